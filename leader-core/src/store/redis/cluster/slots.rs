//! Which node has which slot, as `CLUSTER SLOTS` tells.

use super::super::address::Server;
use super::super::connection::Reply;
use super::super::script::{integer, text};
use super::super::slot::SLOTS;

/// Who has which slot; and who else is there to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Slots {
    primaries: Vec<Server>,
    replicas: Vec<Server>,
    /// For each slot, whose it is: a place among the primaries.
    owners: Box<[Option<u16>]>,
}

impl Slots {
    /// Nobody has any.
    pub(super) fn none() -> Self {
        Self { primaries: Vec::new(), replicas: Vec::new(), owners: vec![None; usize::from(SLOTS)].into() }
    }

    /// Reads what `CLUSTER SLOTS` answers: begin and end of each range, its primary, its replicas. `asked`: who has answered.
    /// Nothing, if it is no such answer.
    pub(in super::super) fn read(reply: &Reply, asked: &Server) -> Option<Self> {
        let Reply::List(ranges) = reply else { return None };
        let mut slots = Self::none();
        for range in ranges {
            let Reply::List(fields) = range else { return None };
            let [begin, end, primary, replicas @ ..] = &fields[..] else { return None };
            let [begin, end] = [begin, end].map(|slot| integer(slot).and_then(|slot| usize::try_from(slot).ok()));
            // Who is there, but nobody knows under which name, cannot be asked.
            if let Some(primary) = node(primary, asked)? {
                let place = slots.place(primary)?;
                let (begin, end) = (begin?, end?);
                // An end before the beginning would be an empty range to a slice.
                slots.owners.get_mut(begin..=end).filter(|range| !range.is_empty())?.fill(Some(place));
            }
            for replica in replicas {
                if let Some(replica) = node(replica, asked)?
                    && !slots.replicas.contains(&replica)
                {
                    slots.replicas.push(replica);
                }
            }
        }
        Some(slots)
    }

    /// Who has this slot.
    pub(in super::super) fn owner(&self, slot: u16) -> Option<&Server> {
        self.primaries.get(usize::from((*self.owners.get(usize::from(slot))?)?))
    }

    /// The same, but this slot is this node's.
    pub(super) fn with(&self, slot: u16, owner: Server) -> Self {
        let mut changed = self.clone();
        let place = changed.place(owner);
        if let Some(known) = changed.owners.get_mut(usize::from(slot)) {
            *known = place;
        }
        changed
    }

    /// Some slot has another node than here, or one where it had none.
    pub(super) fn differ_from(&self, older: &Self) -> bool {
        (0..SLOTS).any(|slot| self.owner(slot).is_some() && self.owner(slot) != older.owner(slot))
    }

    /// This node has slots.
    pub(in super::super) fn has_slots(&self, server: &Server) -> bool {
        let place = self.primaries.iter().position(|known| known == server);
        place.is_some_and(|place| self.owners.iter().flatten().any(|owner| usize::from(*owner) == place))
    }

    /// Nobody has any.
    pub(super) fn is_empty(&self) -> bool {
        self.owners.iter().all(Option::is_none)
    }

    /// So many slots have no node.
    pub(in super::super) fn uncovered(&self) -> usize {
        self.owners.iter().filter(|owner| owner.is_none()).count()
    }

    /// All nodes, the primaries first.
    pub(in super::super) fn nodes(&self) -> impl Iterator<Item = &Server> {
        self.primaries.iter().chain(&self.replicas)
    }

    fn place(&mut self, primary: Server) -> Option<u16> {
        let known = self.primaries.iter().position(|known| *known == primary);
        let place = known.unwrap_or_else(|| {
            self.primaries.push(primary);
            self.primaries.len() - 1
        });
        u16::try_from(place).ok()
    }
}

/// `None`: that is no node. `Some(None)`: its name is unknown.
fn node(reply: &Reply, asked: &Server) -> Option<Option<Server>> {
    let Reply::List(fields) = reply else { return None };
    let [host, port, ..] = &fields[..] else { return None };
    let host = match host {
        // It is where the others are that the one who answers does not know by a name either.
        Reply::Nil => &asked.host,
        host => match text(host)? {
            "" => &asked.host,
            "?" => return Some(None),
            host => host,
        },
    };
    Some(Server::named(host, integer(port).and_then(|port| u16::try_from(port).ok())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(host: &str, port: u16) -> Server {
        Server { host: host.to_owned(), port }
    }

    fn named(host: Reply, port: i64) -> Reply {
        Reply::List(vec![host, Reply::Integer(port), Reply::Text("id".to_owned()), Reply::List(Vec::new())])
    }

    fn at(host: &str, port: i64) -> Reply {
        named(Reply::Text(host.to_owned()), port)
    }

    fn range(begin: i64, end: i64, nodes: Vec<Reply>) -> Reply {
        Reply::List([vec![Reply::Integer(begin), Reply::Integer(end)], nodes].concat())
    }

    fn read(ranges: Vec<Reply>) -> Option<Slots> {
        Slots::read(&Reply::List(ranges), &server("asked", 7000))
    }

    #[test]
    fn each_slot_has_the_first_node_of_its_range() {
        let slots = read(vec![
            range(0, 5460, vec![at("10.0.0.1", 7001), at("10.0.0.4", 7004)]),
            range(5461, 10922, vec![at("10.0.0.2", 7002), at("10.0.0.4", 7004)]),
            range(16383, 16383, vec![at("10.0.0.1", 7001)]),
        ])
        .unwrap();
        let owner = |slot| slots.owner(slot).map(ToString::to_string);
        assert_eq!((owner(0), owner(5460)), (Some("10.0.0.1:7001".to_owned()), Some("10.0.0.1:7001".to_owned())));
        assert_eq!(owner(5461), Some("10.0.0.2:7002".to_owned()));
        assert_eq!(owner(16383), Some("10.0.0.1:7001".to_owned()));
        assert_eq!((owner(10923), owner(16382), owner(SLOTS)), (None, None, None));
        assert_eq!(slots.nodes().count(), 3);
        assert!(slots.has_slots(&server("10.0.0.2", 7002)) && !slots.has_slots(&server("10.0.0.4", 7004)));
    }

    #[test]
    fn a_node_without_a_name_is_where_the_answer_comes_from_and_one_of_an_unknown_name_cannot_be_asked() {
        for host in [Reply::Nil, Reply::Text(String::new())] {
            let slots = read(vec![range(0, 1, vec![named(host, 7003)])]).unwrap();
            assert_eq!(slots.owner(0), Some(&server("asked", 7003)));
        }
        let slots = read(vec![range(0, 1, vec![at("?", 7003), at("b", 7004)])]).unwrap();
        assert_eq!((slots.owner(0), slots.nodes().count(), slots.is_empty()), (None, 1, true));
    }

    #[test]
    fn a_node_without_a_port_for_us_cannot_be_asked_and_takes_no_other_with_it() {
        let slots =
            read(vec![range(0, 1, vec![at("a", 0)]), range(2, 3, vec![at("b", 7004), at("c d", 7005)])]).unwrap();
        assert_eq!((slots.owner(0), slots.owner(2), slots.nodes().count()), (None, Some(&server("b", 7004)), 1));
    }

    #[test]
    fn what_is_no_answer_is_not_taken_for_one() {
        for strange in [
            Reply::Nil,
            Reply::List(vec![Reply::Integer(1)]),
            Reply::List(vec![range(0, 16384, vec![at("a", 1)])]),
            Reply::List(vec![range(-1, 2, vec![at("a", 1)])]),
            Reply::List(vec![range(3, 2, vec![at("a", 1)])]),
            Reply::List(vec![range(0, 2, vec![at("a", 70_000)])]),
            Reply::List(vec![range(0, 2, vec![])]),
            Reply::List(vec![range(0, 2, vec![Reply::Nil])]),
        ] {
            assert_eq!(Slots::read(&strange, &server("asked", 1)), None, "{strange:?}");
        }
    }

    #[test]
    fn a_slot_that_moves_takes_no_other_with_it() {
        let before = read(vec![range(0, 9, vec![at("a", 1)])]).unwrap();
        let after = before.with(4, server("b", 2));
        assert_eq!((after.owner(3), after.owner(4)), (Some(&server("a", 1)), Some(&server("b", 2))));
        assert!(after.differ_from(&before) && before.differ_from(&Slots::none()));
        assert!(!before.differ_from(&before.clone()) && !Slots::none().differ_from(&before));
    }
}
