//! Echo requests of hosts (RFC 792, RFC 4443 4.1): each is sent up to three times, until an answer has come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

use nicbench_protocol::PingState;

use super::claims::Claim;
use super::messages::Echoed;
use crate::wire::ethernet::Mac;

/// Of all hosts of the process, at once.
pub const MOST_PINGS: usize = 1024;
const MOST_TRIES: u32 = 3;
/// Between two tries.
const RETRY_NS: u64 = 1_000_000_000;
/// Between two looks for the MAC address of the next hop.
const LOOK_NS: u64 = 20_000_000;

/// What is known of the way to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the station with this MAC address.
    By(Mac),
    /// Not yet.
    Sought,
    /// There is none.
    Closed,
}

/// One echo request, and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Ping {
    /// Its place among all that were asked for.
    pub number: u16,
    pub own: Claim,
    pub to: IpAddr,
    pub next_hop: IpAddr,
    /// Of the next hop, if it is not to be asked for.
    pub mac: Option<Mac>,
}

#[derive(Debug)]
struct Tried {
    ping: Ping,
    tries: u32,
    state: PingState,
}

/// The pings of the hosts of one port. Those of one request have its sequence number: later answers are not theirs.
#[derive(Debug, Default)]
pub struct Pings {
    pings: Vec<Tried>,
    sequence: u16,
    due: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Pings {
    /// Begins others, in the place of all.
    pub fn begin(&mut self, pings: Vec<Ping>, now_ns: u64) {
        self.due = (0..pings.len()).map(|place| Reverse((now_ns, place))).collect();
        self.pings = pings.into_iter().map(|ping| Tried { ping, tries: 0, state: PingState::Waiting }).collect();
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// The next one that is to be sent now, to this station, with what its answer will have.
    pub fn next(&mut self, now_ns: u64, way: impl Fn(&Ping) -> Way) -> Option<(Ping, Mac, Echoed)> {
        while let Some(Reverse((due_ns, place))) =
            self.due.peek().copied().filter(|Reverse((due_ns, _))| *due_ns <= now_ns)
        {
            self.due.pop();
            let tried = &mut self.pings[place];
            if tried.state != PingState::Waiting {
                continue;
            }
            match way(&tried.ping) {
                Way::Closed => tried.state = PingState::Failed,
                Way::Sought => self.due.push(Reverse((due_ns.max(now_ns) + LOOK_NS, place))),
                Way::By(_) if tried.tries == MOST_TRIES => tried.state = PingState::Failed,
                Way::By(mac) => {
                    tried.tries += 1;
                    self.due.push(Reverse((now_ns + RETRY_NS, place)));
                    return Some((tried.ping, mac, Echoed { identifier: tried.ping.number, sequence: self.sequence }));
                }
            }
        }
        None
    }

    /// An answer has come; whether it is of one of them.
    pub fn answer(&mut self, to: IpAddr, from: IpAddr, echoed: Echoed) -> bool {
        let is_its = |tried: &&mut Tried| {
            let ping = &tried.ping;
            (ping.own.1, ping.to, ping.number, self.sequence) == (to, from, echoed.identifier, echoed.sequence)
        };
        let Some(tried) = self.pings.iter_mut().find(is_its) else { return false };
        tried.state = PingState::Answered;
        true
    }

    /// The number of each, and what became of it.
    pub fn states(&self) -> impl Iterator<Item = (u16, PingState)> + '_ {
        self.pings.iter().map(|tried| (tried.ping.number, tried.state))
    }

    /// Whether an answer may still come.
    pub fn is_waiting(&self) -> bool {
        self.pings.iter().any(|tried| tried.state == PingState::Waiting)
    }

    /// When there is something to do next.
    pub fn next_ns(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((due_ns, _))| *due_ns)
    }
}
