//! What one host knows of its neighbours: whom it asks, who answered, and for how long that holds (RFC 4861 7.3, which
//! is kept for ARP too).

use std::net::IpAddr;

use nicbench_protocol::NeighbourState;

use crate::wire::ethernet::Mac;

/// RFC 4861 10, RETRANS_TIMER.
const RETRY_NS: u64 = 1_000_000_000;
/// RFC 4861 10, MAX_MULTICAST_SOLICIT and MAX_UNICAST_SOLICIT.
const MOST_TRIES: u32 = 3;
/// RFC 4861 10, REACHABLE_TIME.
const REACHABLE_NS: u64 = 30_000_000_000;
/// A gateway that does not answer may come later: RFC 4861 leaves it to the host when to ask again.
const GIVE_UP_NS: u64 = 5_000_000_000;
/// Contradictions have a neighbour asked again so often at most.
const DOUBT_NS: u64 = 1_000_000_000;
/// Neighbours that a host asks for: its gateways, and those that it pings.
const MOST_ASKED_FOR: usize = 256;
/// Neighbours that are kept of those that the host does not ask for.
pub const MOST_LEARNED: usize = 64;

/// One neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub address: IpAddr,
    pub mac: Option<Mac>,
    pub state: NeighbourState,
    /// The address of the host that asks; `None`: it does not ask, and only keeps what it was told.
    pub own: Option<IpAddr>,
    /// When it is to be looked at next; other times are void.
    pub due_ns: u64,
    tries: u32,
    doubted_ns: Option<u64>,
}

/// What became of what a host was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The entry is as before.
    Nothing,
    /// The neighbour is to be asked at `due_ns`.
    Ask,
    /// Nobody had asked.
    Unasked,
    /// Another MAC address is known; the neighbour is asked again, if it was not just now.
    Contradicted { asks: bool },
}

/// The neighbours of a host: first those that it asks for, then what it learned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    entries: Vec<Entry>,
    asked_for: usize,
    /// The learned one that gives way next.
    oldest: usize,
}

impl Table {
    /// Asks for `address` from `own`, at `due_ns`; returns its place, if it is to be asked then. At most 256 are asked.
    pub fn want(&mut self, address: IpAddr, own: IpAddr, due_ns: u64) -> Option<usize> {
        let known = self.find(address);
        if let Some(place) = known.filter(|place| *place < self.asked_for) {
            let entry = &mut self.entries[place];
            let is_failed = entry.state == NeighbourState::Failed;
            if is_failed {
                entry.begin_anew(due_ns);
            }
            return is_failed.then_some(place);
        }
        if self.asked_for == MOST_ASKED_FOR {
            return None;
        }
        if let Some(learned) = known {
            self.entries.remove(learned);
        }
        let place = self.asked_for;
        self.entries.insert(place, Entry::new(address, Some(own), due_ns));
        self.asked_for += 1;
        Some(place)
    }

    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn find(&self, address: IpAddr) -> Option<usize> {
        self.entries.iter().position(|entry| entry.address == address)
    }

    /// The time of this entry has come: who is to be asked, and where, is returned.
    pub fn ask(&mut self, place: usize, now_ns: u64) -> Option<(IpAddr, IpAddr, Option<Mac>)> {
        let entry = self.entries.get_mut(place)?;
        let own = entry.own?;
        entry.go_on(now_ns);
        Some((own, entry.address, entry.mac))
    }

    /// Has those asked that `own` asks for, and that have not answered; returns their places.
    pub fn begin(&mut self, own: IpAddr, now_ns: u64) -> Vec<usize> {
        let begins = |(place, entry): (usize, &mut Entry)| {
            let is_its = entry.own == Some(own) && entry.state == NeighbourState::Incomplete;
            if is_its {
                entry.due_ns = now_ns;
            }
            is_its.then_some(place)
        };
        self.entries.iter_mut().enumerate().filter_map(begins).collect()
    }

    /// Has those that did not answer asked again; returns their places.
    pub fn retry(&mut self, now_ns: u64) -> Vec<usize> {
        let failed = |(_, entry): &(usize, &mut Entry)| entry.state == NeighbourState::Failed;
        let restart = |(place, entry): (usize, &mut Entry)| {
            entry.begin_anew(now_ns);
            place
        };
        self.entries.iter_mut().enumerate().filter(failed).map(restart).collect()
    }

    /// A neighbour answered this host.
    pub fn answered(&mut self, address: IpAddr, mac: Option<Mac>, now_ns: u64) -> Told {
        let Some(place) = self.find(address).filter(|place| self.entries[*place].own.is_some()) else {
            return Told::Unasked;
        };
        let entry = &mut self.entries[place];
        // RFC 4861 7.2.5: without its option an advertisement confirms what is known, and tells nothing new.
        match (entry.state, mac.or(entry.mac)) {
            (_, None) => Told::Nothing,
            (NeighbourState::Incomplete | NeighbourState::Failed, Some(mac)) => entry.confirm(mac, now_ns),
            (NeighbourState::Probe, Some(mac)) if entry.mac == Some(mac) => entry.confirm(mac, now_ns),
            (_, Some(mac)) if entry.mac == Some(mac) => Told::Unasked,
            _ => entry.doubt(now_ns),
        }
    }

    /// A neighbour asked this host, and told where it is itself (RFC 826, RFC 4861 7.2.3).
    pub fn was_asked_by(&mut self, address: IpAddr, mac: Mac, now_ns: u64) -> Told {
        let Some(place) = self.find(address) else {
            self.learn(address, mac);
            return Told::Nothing;
        };
        let entry = &mut self.entries[place];
        match entry.state {
            _ if entry.own.is_none() => {
                entry.mac = Some(mac);
                Told::Nothing
            }
            // It is there after all.
            NeighbourState::Failed => {
                entry.begin_anew(now_ns);
                Told::Ask
            }
            // Its answer is under way.
            NeighbourState::Incomplete => Told::Nothing,
            _ if entry.mac == Some(mac) => Told::Nothing,
            _ => entry.doubt(now_ns),
        }
    }

    fn learn(&mut self, address: IpAddr, mac: Mac) {
        let entry = Entry { mac: Some(mac), state: NeighbourState::Stale, ..Entry::new(address, None, 0) };
        if self.entries.len() < self.asked_for + MOST_LEARNED {
            self.entries.push(entry);
            return;
        }
        let place = self.asked_for + self.oldest;
        self.entries[place] = entry;
        self.oldest = (self.oldest + 1) % MOST_LEARNED;
    }
}

impl Entry {
    fn new(address: IpAddr, own: Option<IpAddr>, due_ns: u64) -> Self {
        Self { address, mac: None, state: NeighbourState::Incomplete, own, due_ns, tries: 0, doubted_ns: None }
    }

    /// Whether an answer is expected: a question is out, or about to be.
    pub fn is_waiting(&self) -> bool {
        self.own.is_some() && matches!(self.state, NeighbourState::Incomplete | NeighbourState::Probe)
    }

    fn begin_anew(&mut self, now_ns: u64) {
        (self.state, self.mac, self.tries, self.due_ns) = (NeighbourState::Incomplete, None, 0, now_ns);
    }

    /// The neighbour is asked now: what that makes of it, and when it is looked at next.
    fn go_on(&mut self, now_ns: u64) {
        if self.state == NeighbourState::Reachable {
            (self.state, self.tries) = (NeighbourState::Probe, 0);
        }
        if self.state == NeighbourState::Probe && self.tries == MOST_TRIES {
            self.begin_anew(now_ns);
        }
        if self.state == NeighbourState::Incomplete && self.tries == MOST_TRIES {
            self.state = NeighbourState::Failed;
        }
        self.tries = self.tries.saturating_add(1);
        self.due_ns = now_ns + if self.state == NeighbourState::Failed { GIVE_UP_NS } else { RETRY_NS };
    }

    fn confirm(&mut self, mac: Mac, now_ns: u64) -> Told {
        (self.mac, self.state, self.due_ns) = (Some(mac), NeighbourState::Reachable, now_ns + REACHABLE_NS);
        Told::Ask
    }

    /// Somebody says something else of a neighbour that is known: it is asked, and what it says itself holds. So a
    /// forged answer changes nothing, and a neighbour that moved is found.
    fn doubt(&mut self, now_ns: u64) -> Told {
        let is_recent = self.doubted_ns.is_some_and(|doubted_ns| now_ns < doubted_ns + DOUBT_NS);
        let asks = self.state == NeighbourState::Reachable && !is_recent;
        if asks {
            (self.state, self.tries, self.due_ns, self.doubted_ns) = (NeighbourState::Probe, 0, now_ns, Some(now_ns));
        }
        Told::Contradicted { asks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const GATEWAY: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 254));
    const MAC: Mac = [2, 0, 0, 0, 0, 0xFE];
    const OTHER: Mac = [2, 0, 0, 0, 0, 0xBA];
    const S: u64 = 1_000_000_000;

    /// A table whose gateway answered at once.
    fn resolved() -> Table {
        let mut table = Table::default();
        table.want(GATEWAY, OWN, 0);
        assert_eq!(table.ask(0, 0), Some((OWN, GATEWAY, None)));
        assert_eq!(table.answered(GATEWAY, Some(MAC), 0), Told::Ask);
        table
    }

    fn state(table: &Table) -> (NeighbourState, Option<Mac>, u64) {
        let entry = &table.entries()[0];
        (entry.state, entry.mac, entry.due_ns)
    }

    #[test]
    fn who_does_not_answer_is_asked_three_times_and_every_five_seconds_from_then_on() {
        let mut table = Table::default();
        table.want(GATEWAY, OWN, 0);
        let mut times = Vec::new();
        for _ in 0..5 {
            let due_ns = table.entries()[0].due_ns;
            times.push(due_ns / S);
            assert_eq!(table.ask(0, due_ns), Some((OWN, GATEWAY, None)));
        }
        assert_eq!((times, state(&table).0), (vec![0, 1, 2, 3, 8], NeighbourState::Failed));
        assert_eq!(table.answered(GATEWAY, Some(MAC), 9 * S), Told::Ask);
        assert_eq!(state(&table), (NeighbourState::Reachable, Some(MAC), 39 * S));
    }

    #[test]
    fn who_answered_is_asked_again_after_half_a_minute_where_it_was() {
        let mut table = resolved();
        assert_eq!(table.ask(0, 30 * S), Some((OWN, GATEWAY, Some(MAC))));
        assert_eq!(state(&table), (NeighbourState::Probe, Some(MAC), 31 * S));
        assert_eq!(table.answered(GATEWAY, None, 30 * S), Told::Ask);
        assert_eq!(state(&table), (NeighbourState::Reachable, Some(MAC), 60 * S));
        for second in 60..63 {
            assert_eq!(table.ask(0, second * S), Some((OWN, GATEWAY, Some(MAC))));
        }
        assert_eq!(table.ask(0, 63 * S), Some((OWN, GATEWAY, None)), "then all are asked");
        assert_eq!(table.answered(GATEWAY, Some(OTHER), 63 * S), Told::Ask);
        assert_eq!(state(&table).1, Some(OTHER));
    }

    #[test]
    fn a_forged_answer_changes_nothing_and_has_the_neighbour_asked_once_a_second() {
        let mut table = resolved();
        assert_eq!(table.answered(GATEWAY, Some(OTHER), S), Told::Contradicted { asks: true });
        assert_eq!(table.ask(0, S), Some((OWN, GATEWAY, Some(MAC))));
        assert_eq!(table.answered(GATEWAY, Some(OTHER), S), Told::Contradicted { asks: false });
        assert_eq!(table.answered(GATEWAY, Some(MAC), S), Told::Ask);
        assert_eq!(table.answered(GATEWAY, Some(OTHER), S + 1), Told::Contradicted { asks: false });
        assert_eq!(table.was_asked_by(GATEWAY, OTHER, S + 1), Told::Contradicted { asks: false });
        assert_eq!(state(&table).1, Some(MAC));
        assert_eq!(table.answered(GATEWAY, Some(MAC), S + 1), Told::Unasked);
    }

    #[test]
    fn those_who_ask_are_kept_up_to_a_number() {
        let mut table = resolved();
        for last in 0..=255 {
            let address = IpAddr::from([10, 0, 1, last]);
            assert_eq!(table.was_asked_by(address, OTHER, 0), Told::Nothing);
            assert_eq!(table.answered(address, Some(MAC), 0), Told::Unasked);
        }
        assert_eq!(table.entries().len(), 1 + MOST_LEARNED);
        assert!(table.find(GATEWAY) == Some(0) && table.find(IpAddr::from([10, 0, 1, 255])).is_some());
        assert!(table.find(IpAddr::from([10, 0, 1, 0])).is_none());
    }

    #[test]
    fn a_gateway_that_asks_is_there_after_all() {
        let mut table = Table::default();
        table.want(GATEWAY, OWN, 0);
        (0..4).for_each(|second| assert!(table.ask(0, second * S).is_some()));
        assert_eq!(table.was_asked_by(GATEWAY, MAC, 4 * S), Told::Ask);
        assert_eq!(state(&table), (NeighbourState::Incomplete, None, 4 * S));
        assert_eq!(table.retry(5 * S), Vec::<usize>::new());
    }
}
