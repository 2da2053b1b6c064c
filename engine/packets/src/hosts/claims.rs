//! Whose the addresses of hosts are. Each host asks whether an address is free: one of IPv6 is tentative until nobody
//! has answered for a second (RFC 4862 5.4), one of IPv4 is used at once. What is used is defended (RFC 5227 2.4).

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use super::messages::Station;
use crate::wire::ethernet::Mac;

/// RFC 4861 10, RETRANS_TIMER, which RFC 4862 5.4 waits for after one solicitation (5.1, DupAddrDetectTransmits).
const TENTATIVE_NS: u64 = 1_000_000_000;
/// RFC 5227 1.1, DEFEND_INTERVAL.
const DEFEND_NS: u64 = 10_000_000_000;

/// An address of the host at this place.
pub type Claim = (usize, IpAddr);

/// Who else claims an address.
#[derive(Debug, Clone, Copy)]
pub struct Rival {
    pub mac: Mac,
    pub claims: u64,
    /// Whether it had the address first: the host does not use it.
    pub is_first: bool,
    defended_ns: Option<u64>,
}

/// The claims of the hosts of one port.
#[derive(Debug, Default)]
pub struct Claims {
    /// Those that are still to be asked for.
    unasked: VecDeque<Claim>,
    /// Those that were asked for, with the end of the time in which an answer counts, the first one first.
    asked: VecDeque<(u64, Claim)>,
    tentative: HashSet<Claim>,
    rivals: HashMap<Claim, Rival>,
}

impl Claims {
    /// Has a host claim an address. `waits`: it is not used before it is known to be free.
    pub fn add(&mut self, claim: Claim, waits: bool) {
        self.unasked.push_back(claim);
        if waits {
            self.tentative.insert(claim);
        }
    }

    /// The next one that is to be asked for now.
    pub fn ask(&mut self, now_ns: u64) -> Option<Claim> {
        let claim = self.unasked.pop_front()?;
        if self.tentative.contains(&claim) {
            self.asked.push_back((now_ns + TENTATIVE_NS, claim));
        }
        Some(claim)
    }

    /// The next one that is not tentative any more.
    pub fn settle(&mut self, now_ns: u64) -> Option<Claim> {
        let (_, claim) = self.asked.front().copied().filter(|(end_ns, _)| *end_ns <= now_ns)?;
        self.asked.pop_front();
        self.tentative.remove(&claim);
        Some(claim)
    }

    /// Whether the host uses the address.
    pub fn is_used(&self, claim: Claim) -> bool {
        !self.tentative.contains(&claim) && !self.is_given_up(claim)
    }

    /// Whether the host will never use the address (RFC 4862 5.4.5).
    pub fn is_given_up(&self, claim: Claim) -> bool {
        self.rivals.get(&claim).is_some_and(|rival| rival.is_first)
    }

    /// How many are tentative.
    pub fn tentative(&self) -> usize {
        self.tentative.len()
    }

    /// Whether some are still to be asked for.
    pub fn is_any_unasked(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// When the next one is settled.
    pub fn next_ns(&self) -> Option<u64> {
        self.asked.front().map(|(end_ns, _)| *end_ns)
    }

    /// Somebody else claims an address, and is noted.
    pub fn note(&mut self, place: usize, Station { address, mac }: Station) -> &mut Rival {
        let claim = (place, address);
        let is_first = self.tentative.contains(&claim);
        let rival = self.rivals.entry(claim).or_insert(Rival { mac, claims: 0, is_first, defended_ns: None });
        rival.mac = mac;
        rival.claims += 1;
        rival
    }

    /// Somebody else uses an address, and is noted; whether the address is to be defended now.
    pub fn contest(&mut self, place: usize, station: Station, now_ns: u64) -> bool {
        let rival = self.note(place, station);
        let is_due = rival.defended_ns.is_none_or(|defended_ns| now_ns >= defended_ns + DEFEND_NS) && !rival.is_first;
        if is_due {
            rival.defended_ns = Some(now_ns);
        }
        is_due
    }

    /// All that somebody else claims too.
    pub fn rivals(&self) -> impl Iterator<Item = (Claim, &Rival)> {
        self.rivals.iter().map(|(claim, rival)| (*claim, rival))
    }
}
