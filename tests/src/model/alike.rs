//! Instances are alike but for their names: states that differ by names only are one state.
//!
//! In each state the instances are put into an order that does not depend on their names, and everybody is named anew: the
//! living in that order, then the dead as they are found. Where two instances look alike, either order is right: some states
//! are then searched twice, and none is missed.

use std::hash::{DefaultHasher, Hash, Hasher};

use leader_core::store::Answer;
use leader_core::{Candidate, Incarnation, InstanceId};

use super::state::{Content, State};

/// Enough for three who live and all who died.
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

thread_local! {
    static IDS: [InstanceId; 8] = NAMES.map(|name| InstanceId::new(name).expect("a valid id"));
}

/// The new names of those who were met so far.
#[derive(Default)]
struct Names {
    ids: Vec<InstanceId>,
    incarnations: Vec<Incarnation>,
}

/// The place of `what`, which is put at the end if it is new.
fn place<T: Clone + PartialEq>(known: &mut Vec<T>, what: &T) -> usize {
    known.iter().position(|known| known == what).unwrap_or_else(|| {
        known.push(what.clone());
        known.len() - 1
    })
}

impl Names {
    fn rename(&mut self, id: &mut InstanceId, incarnation: Option<&mut Incarnation>) {
        let place_of_id = place(&mut self.ids, id);
        *id = IDS.with(|ids| ids[place_of_id].clone());
        if let Some(incarnation) = incarnation {
            *incarnation = numbered(place(&mut self.incarnations, incarnation));
        }
    }

    fn rename_candidate(&mut self, candidate: &mut Candidate) {
        self.rename(&mut candidate.id, Some(&mut candidate.incarnation));
    }
}

pub(super) fn numbered(start: usize) -> Incarnation {
    Incarnation::from_u128(start as u128)
}

/// The candidate of a process that has just begun: its incarnation is nobody's.
pub(super) fn newcomer(name: &str) -> Candidate {
    Candidate { id: InstanceId::new(name).expect("a valid id"), incarnation: numbered(usize::MAX) }
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

impl State {
    /// Puts the instances in order, and gives everybody a new name.
    pub(super) fn number_instances(&mut self) {
        let looks: Vec<u64> = (0..self.members.len()).map(|instance| self.look_of(instance)).collect();
        let mut order: Vec<usize> = (0..looks.len()).collect();
        order.sort_by_key(|instance| looks[*instance]);
        if !order.is_sorted() {
            self.members = order.iter().map(|old| self.members[*old].clone()).collect();
            let new = |old: usize| order.iter().position(|known| *known == old).unwrap_or(old);
            self.packets.iter_mut().for_each(|packet| packet.instance = new(packet.instance));
            self.led = self.led.map(|(term, who)| (term, new(who)));
        }
        self.name_anew();
        // The network keeps no order.
        self.packets.sort_by_cached_key(hash_of);
    }

    /// What an instance looks like to whoever cannot read names.
    fn look_of(&self, instance: usize) -> u64 {
        let member = &self.members[instance];
        let own = member.election.candidate();
        let nobody = IDS.with(|ids| Candidate { id: ids[0].clone(), incarnation: numbered(0) });
        let mut election = member.election.clone();
        election.rename(nobody.clone());
        let memories = [Some(&self.store.data), self.cut_off.as_ref().map(|store| &store.data)];
        let memories = memories.into_iter().chain([self.replica.as_ref(), self.snapshot.as_ref()]);
        let places: Vec<_> = memories.map(|memory| memory.map(|data| data.place_of(own))).collect();
        let led = self.led.is_some_and(|(_, who)| who == instance);
        let packets = self.packets.iter().filter(|packet| packet.instance == instance).map(|packet| {
            let mut packet = packet.clone();
            packet.instance = 0;
            match &mut packet.content {
                Content::Request(command) => {
                    let is_own = command.candidate == *own;
                    command.candidate = nobody.clone();
                    hash_of(&(packet, is_own))
                }
                Content::Answer { answer: Answer::Held(held), .. } => {
                    let is_own = held.holder == own.id;
                    held.holder = nobody.id.clone();
                    hash_of(&(packet, is_own))
                }
                _ => hash_of(&packet),
            }
        });
        let packets = packets.fold(0, u64::wrapping_add);
        hash_of(&(election, member.cut_off, places, led, packets))
    }

    fn name_anew(&mut self) {
        let mut names = Names::default();
        for member in &mut self.members {
            let mut candidate = member.election.candidate().clone();
            names.rename_candidate(&mut candidate);
            member.election.rename(candidate);
        }
        let memories = [Some(&mut self.store.data), self.cut_off.as_mut().map(|store| &mut store.data)];
        for memory in memories.into_iter().chain([self.replica.as_mut(), self.snapshot.as_mut()]).flatten() {
            memory.rename(&mut |id, incarnation| names.rename(id, incarnation));
        }
        for packet in &mut self.packets {
            match &mut packet.content {
                Content::Request(command) => names.rename_candidate(&mut command.candidate),
                Content::Answer { answer: Answer::Held(held), .. } => names.rename(&mut held.holder, None),
                _ => {}
            }
        }
    }
}
