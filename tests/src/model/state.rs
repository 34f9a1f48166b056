//! Everything that there is at one instant, and what the network and the stores do with it.

use leader_core::store::{Answer, Command};
use leader_core::testing::election::{Election, Event, Failure, KnownBad, Notice, RequestNo};
use leader_core::{BootInstant, Term};

use super::{Bounds, Faults, Replication};
use crate::sim::store::{Data, Store};

/// Everything that there is at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) now: u64,
    /// Where new connections lead to.
    pub(super) store: Store,
    /// What its replica holds.
    pub(super) replica: Option<Data>,
    /// The primary that was cut off, and goes on for whoever is still connected to it.
    pub(super) cut_off: Option<Store>,
    pub(super) snapshot: Option<Data>,
    pub(super) members: Vec<Member>,
    pub(super) packets: Vec<Packet>,
    pub(super) left: Faults,
    /// The largest term that anybody led under, and who did.
    pub(super) led: Option<(Term, usize)>,
    pub(super) handed_over: bool,
    pub(super) term_repeated_or_fell: bool,
}

/// One instance.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) election: Election,
    /// Its connection leads to the primary that was cut off.
    pub(super) cut_off: bool,
}

/// Something under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Packet {
    pub(super) instance: usize,
    /// Its sender still waits for the answer.
    pub(super) awaited: bool,
    /// To or from the primary that was cut off.
    pub(super) cut_off: bool,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Content {
    Request(Command),
    Answer {
        answer: Answer,
        /// Nobody waits for a replica to have it, or it has.
        replicated: bool,
    },
    Release,
}

pub(super) fn instant(tick: u64) -> BootInstant {
    BootInstant::from_nanos((1000 + tick) * 1_000_000)
}

impl State {
    /// The time of the stores' clocks, in microseconds.
    fn store_time(&self) -> u64 {
        (1000 + self.now) * 1000
    }

    pub(super) fn execute(&mut self, bounds: &Bounds, packet: &Packet) {
        let Content::Request(command) = &packet.content else { return };
        let at = self.store_time();
        let store = if packet.cut_off { self.cut_off.as_mut() } else { Some(&mut self.store) };
        let Some(store) = store else { return };
        let done = store.execute(at, command);
        if done.announced {
            let hears = |(who, member): (usize, &Member)| {
                (who != packet.instance && member.cut_off == packet.cut_off).then_some(who)
            };
            let hearers: Vec<usize> = self.members.iter().enumerate().filter_map(hears).collect();
            let release =
                |instance| Packet { instance, awaited: false, cut_off: packet.cut_off, content: Content::Release };
            self.packets.extend(hearers.into_iter().map(release));
        }
        if packet.awaited || bounds.known_bad == Some(KnownBad::LateReply) {
            let changes = matches!(done.answer, Answer::Won(_) | Answer::Renewed);
            let has_replica = packet.cut_off || self.replica.is_some();
            let replicated = bounds.replication != Replication::WaitedFor || !changes || !has_replica;
            let content = Content::Answer { answer: done.answer, replicated };
            self.packets.push(Packet { content, ..packet.clone() });
        }
    }

    pub(super) fn deliver(&mut self, bounds: &Bounds, packet: Packet) {
        let Packet { instance, awaited, content, .. } = packet;
        match content {
            // The driver drops a call with its request: only where that rule is broken there is such an answer.
            Content::Answer { answer, .. } if !awaited => self.handle(instance, Event::Answered(RequestNo(0), answer)),
            Content::Answer { answer, .. } => {
                self.give_up(bounds, instance);
                self.handle(instance, Event::Answered(RequestNo(1), answer));
            }
            Content::Release => self.handle(instance, Event::Announced),
            Content::Request(_) => {}
        }
    }

    pub(super) fn fail(&mut self, bounds: &Bounds, instance: usize) {
        self.give_up(bounds, instance);
        self.handle(instance, Event::Failed(RequestNo(1), Failure::Passing));
    }

    pub(super) fn handle(&mut self, instance: usize, event: Event) {
        let mut notices = Vec::new();
        self.members[instance].election.handle(instant(self.now), event, &mut notices);
        for notice in notices {
            let Notice::Acquired(term) = notice else { continue };
            if let Some((before, who)) = self.led {
                self.term_repeated_or_fell |= term <= before;
                self.handed_over |= who != instance;
            }
            self.led = Some((term, instance));
        }
    }

    /// What an instance had sent is awaited no more; answers to it mean nothing.
    pub(super) fn give_up(&mut self, bounds: &Bounds, instance: usize) {
        let late = bounds.known_bad == Some(KnownBad::LateReply);
        self.packets.retain_mut(|packet| {
            let own = packet.instance == instance && packet.awaited;
            packet.awaited &= !own;
            late || !(own && matches!(packet.content, Content::Answer { .. }))
        });
    }

    /// The replica has everything from here on.
    pub(super) fn replicate(&mut self) {
        self.replica = Some(self.store.data.clone());
        for packet in self.packets.iter_mut().filter(|packet| !packet.cut_off) {
            if let Content::Answer { replicated, .. } = &mut packet.content {
                *replicated = true;
            }
        }
    }

    /// The replica takes the primary's place, with what it has.
    pub(super) fn promote(&mut self) {
        self.store.data = self.replica.take().unwrap_or_default();
        self.store.server += 1;
    }

    /// The replica is promoted, while the primary and all who are connected to it do not know.
    pub(super) fn cut_off(&mut self) {
        self.cut_off = Some(self.store.clone());
        self.promote();
        self.members.iter_mut().for_each(|member| member.cut_off = true);
        self.packets.iter_mut().for_each(|packet| packet.cut_off = true);
    }

    /// Brings states that have one future into one form.
    pub(super) fn tidy_up(&mut self) {
        let (at, now) = (self.store_time(), instant(self.now));
        self.store.forget_the_past(at);
        let nobody_is = |state: &Self| {
            state.members.iter().all(|member| !member.cut_off) && state.packets.iter().all(|packet| !packet.cut_off)
        };
        if self.cut_off.is_some() && nobody_is(self) {
            self.cut_off = None;
        }
        if let Some(store) = &mut self.cut_off {
            store.forget_the_past(at);
        }
        for member in &mut self.members {
            member.election.forget_the_past(now);
        }
        self.number_instances();
    }

    /// How many instances may believe that they lead.
    pub(super) fn leaders(&self) -> usize {
        let now = instant(self.now);
        self.members.iter().filter(|member| member.election.view(now).is_some()).count()
    }
}
