//! Hosts at a port: stations that answer ARP requests, neighbour solicitations and echo requests, ask for their
//! gateways, ping, and notice who else has their addresses. `protocol/README.md`, "Hosts".
//!
//! Frames that are no flow's come here, and few go out: what is looked at and sent in a second is bounded, and so is
//! what is kept. Times are nanoseconds of the worker's clock.

mod claims;
mod messages;
mod pings;
mod table;
mod taps;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use nicbench_protocol::{
    Duplicate, HostAddress, HostCounts, HostRequest, HostTag, Neighbour, NeighbourState, PingRequest, PingState,
};

use self::claims::Claims;
use self::messages::{
    Heard, Station, announcement, echo_reply, echo_request, may_concern, probe, question, read, with_type,
};
pub use self::pings::MOST_PINGS;
use self::pings::{Ping, Pings, Way};
use self::table::{Table, Told};
use self::taps::Taps;
use crate::addresses::{mac_text, parse_mac};
use crate::error::{EngineError, ErrorKind};
use crate::port::{Port, send_one};
use crate::sys::tap_device::TapDevice;
use crate::traffic::allowance::Allowance;
use crate::traffic::neighbours::{Ours, Protocol, answer};
use crate::wire::ethernet::{self, Mac};
use crate::wire::{Ethernet, Header, Headers, Vlan, vlan};

/// Of a port.
pub const MOST_HOSTS: usize = 1024;
/// Of a host.
const MOST_ADDRESSES: usize = 64;
/// Of a host's frames.
const MOST_TAGS: usize = 3;
/// Messages that are read, and frames that are sent, in a second and at once.
const LOOKS: Allowance = Allowance::new(20_000.0, 8192.0);
const SENDS: Allowance = Allowance::new(5_000.0, 256.0);
/// Answers that wait to be sent; what comes beyond is dropped.
const MOST_WAITING: usize = 2048;
/// Questions are asked while at most this number of frames wait: answers come first.
const FEW_WAITING: usize = 32;
/// Frames that go out in one turn.
const SENT_AT_ONCE: usize = 16;

/// The VLANs of a frame, by their identifiers, the outermost first: which type its tags have depends on the port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Vlans([u16; MOST_TAGS]);

/// One host.
#[derive(Debug)]
struct Host {
    /// Among all hosts of the process.
    number: u32,
    mac: Mac,
    vlans: Vlans,
    /// Ethernet's header and tags of what it sends.
    link: Vec<u8>,
    addresses: Vec<IpAddr>,
    table: Table,
    /// Whether a kernel answers in its place.
    is_tapped: bool,
}

/// The hosts of one port.
#[derive(Debug)]
pub struct PortHosts {
    hosts: Vec<Host>,
    by_address: HashMap<(Vlans, IpAddr), usize>,
    macs: HashSet<Mac>,
    /// When which neighbour of which host is to be looked at; void where the entry says another time.
    due: BinaryHeap<Reverse<(u64, usize, usize)>>,
    claims: Claims,
    pings: Pings,
    waiting: VecDeque<Vec<u8>>,
    looks: Allowance,
    sends: Allowance,
    taps: Taps,
    pub counts: HostCounts,
}

impl Default for PortHosts {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            by_address: HashMap::new(),
            macs: HashSet::new(),
            due: BinaryHeap::new(),
            claims: Claims::default(),
            pings: Pings::default(),
            waiting: VecDeque::new(),
            looks: LOOKS,
            sends: SENDS,
            taps: Taps::default(),
            counts: HostCounts::default(),
        }
    }
}

/// A host as it answers: the addresses were looked up.
struct Answering<'a>(&'a Host);

impl Ours for Answering<'_> {
    fn link(&self, _: IpAddr, question: &[u8]) -> Option<Vec<u8>> {
        let ethertype = question.last_chunk().map(|bytes| u16::from_be_bytes(*bytes))?;
        Some(with_type(&self.0.link, ethertype))
    }
}

impl PortHosts {
    /// Other hosts at the same port, whose counts go on. The numbers are those of the requests.
    ///
    /// # Errors
    /// Where a host cannot be, or two of one VLAN have the same address.
    pub fn replaced(&self, requests: &[(u32, &HostRequest)], now_ns: u64) -> Result<Self, EngineError> {
        if requests.len() > MOST_HOSTS {
            return Err(refuse(format!("there are {} hosts at a port", requests.len()), "use at most 1024"));
        }
        let mut fresh = Self { counts: self.counts, looks: self.looks, sends: self.sends, ..Self::default() };
        for (number, request) in requests {
            fresh.add(*number, request, now_ns)?;
        }
        Ok(fresh)
    }

    fn add(&mut self, number: u32, request: &HostRequest, now_ns: u64) -> Result<(), EngineError> {
        let place = self.hosts.len();
        let mut host = Host::of(number, request)?;
        for HostAddress { address, gateway } in &request.addresses {
            if self.by_address.insert((host.vlans, *address), place).is_some() {
                let message = format!("host {number}: another host of its port and VLAN has {address} too");
                return Err(refuse(message, "give each host its own address"));
            }
            // A kernel answers at once, and by itself.
            let waits = address.is_ipv6() && !host.is_tapped;
            self.claims.add((place, *address), waits);
            if let Some(gateway) = gateway {
                if gateway.is_ipv4() != address.is_ipv4() {
                    let message = format!("host {number}: {address} and its gateway {gateway} differ in their version");
                    return Err(refuse(message, "give both as IPv4 or both as IPv6"));
                }
                let entry = host.table.want(*gateway, *address, now_ns);
                self.due.extend(entry.filter(|_| !waits).map(|entry| Reverse((now_ns, place, entry))));
            }
        }
        self.macs.insert(host.mac);
        if let Some(name) = &request.tap {
            let device = TapDevice::make(name).map_err(|error| {
                let message = format!("host {number}: the interface {name} cannot be made: {error}");
                refuse(message, "give the engine the right to make interfaces (CAP_NET_ADMIN), or leave `tap` out")
            })?;
            self.taps.add(&host, Box::new(device));
        }
        self.hosts.push(host);
        Ok(())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Looks at a frame that is no flow's; whether it was meant for a host.
    pub fn receive(&mut self, frame: &[u8], now_ns: u64) -> bool {
        if self.hosts.is_empty() {
            return false;
        }
        let is_tapped = self.taps.receive(frame, now_ns, &mut self.counts);
        let is_ours = may_concern(frame) && self.hear(frame, now_ns).unwrap_or(false) || is_tapped;
        self.counts.received += u64::from(is_ours);
        is_ours
    }

    fn hear(&mut self, frame: &[u8], now_ns: u64) -> Option<bool> {
        let headers = Headers::find(frame, 0)?;
        let link = Ethernet::at(frame, 0)?;
        if self.macs.contains(&link.get(ethernet::SOURCE)) {
            self.counts.looped += 1;
            return Some(true);
        }
        if !self.looks.take(now_ns) {
            self.counts.dropped += 1;
            return Some(true);
        }
        let vlans = Vlans::of(frame, headers.network)?;
        let is_ours = match read(frame, &headers)? {
            Heard::Malformed => {
                self.counts.malformed += 1;
                false
            }
            Heard::Question { target, asker } => self.be_asked(frame, vlans, target, asker, now_ns),
            Heard::Answer { address, mac, to } => self.be_answered(vlans, (address, mac), to, now_ns),
            Heard::Echo { to, from, message_at, end } => {
                let destination = link.get(ethernet::DESTINATION);
                let is_ours = |place: &usize| {
                    let host = &self.hosts[*place];
                    host.mac == destination && !host.is_tapped && self.claims.is_used((*place, to))
                };
                let place = self.find(vlans, to).filter(is_ours);
                place.is_some_and(|place| {
                    let is_one = !(from.is_multicast() || from.is_unspecified());
                    let message = frame.get(message_at..end).filter(|_| is_one);
                    let host = &self.hosts[place];
                    let asker = link.get(ethernet::SOURCE);
                    let reply = message.and_then(|message| echo_reply(&host.link, asker, to, from, message));
                    let is_queued = reply.is_some_and(|reply| self.queue(reply));
                    self.counts.echo_answered += u64::from(is_queued);
                    true
                })
            }
            Heard::EchoReply { to, from, echoed } => self.pings.answer(to, from, echoed),
        };
        Some(is_ours)
    }

    fn find(&self, vlans: Vlans, address: IpAddr) -> Option<usize> {
        self.by_address.get(&(vlans, address)).copied()
    }

    fn be_asked(&mut self, frame: &[u8], vlans: Vlans, target: IpAddr, asker: Station, now_ns: u64) -> bool {
        if self.macs.contains(&asker.mac) {
            self.counts.looped += 1;
            return true;
        }
        if let Some(place) = self.find(vlans, asker.address) {
            self.be_rivalled(place, asker, now_ns);
            return true;
        }
        let Some(place) = self.find(vlans, target) else { return false };
        if asker.address.is_unspecified() {
            // Somebody is about to take the address: the answer keeps it from that.
            self.claims.note(place, Station { address: target, ..asker });
        }
        if !self.claims.is_used((place, target)) {
            return true; // RFC 4862 5.4.3
        }
        let host = Some(&self.hosts[place]).filter(|host| !host.is_tapped);
        match host.and_then(|host| answer(frame, &Answering(host))) {
            Some((Protocol::Arp, reply)) => self.counts.arp_answered += u64::from(self.queue(reply)),
            Some((Protocol::NeighbourDiscovery, reply)) => self.counts.nd_answered += u64::from(self.queue(reply)),
            None => {}
        }
        if !asker.address.is_unspecified() {
            let told = self.hosts[place].table.was_asked_by(asker.address, asker.mac, now_ns);
            self.note(place, asker.address, told);
        }
        true
    }

    fn be_answered(&mut self, vlans: Vlans, (address, mac): (IpAddr, Option<Mac>), to: IpAddr, now_ns: u64) -> bool {
        if let Some(place) = self.find(vlans, address) {
            if let Some(mac) = mac.filter(|mac| !self.macs.contains(mac)) {
                self.be_rivalled(place, Station { address, mac }, now_ns);
            }
            return true;
        }
        let Some(place) = self.find(vlans, to) else { return false };
        let told = self.hosts[place].table.answered(address, mac, now_ns);
        self.note(place, address, told);
        true
    }

    fn note(&mut self, place: usize, neighbour: IpAddr, told: Told) {
        let asks = match told {
            Told::Nothing => false,
            Told::Ask => true,
            Told::Unasked => {
                // A kernel asks for itself.
                self.counts.unasked += u64::from(!self.hosts[place].is_tapped);
                false
            }
            Told::Contradicted { asks } => {
                self.counts.contradicted += 1;
                asks
            }
        };
        let table = &self.hosts[place].table;
        if let Some(entry) = table.find(neighbour).filter(|_| asks) {
            self.due.push(Reverse((table.entries()[entry].due_ns, place, entry)));
        }
    }

    /// Somebody else has an address of the host at `place`: it is defended (RFC 5227 2.4).
    fn be_rivalled(&mut self, place: usize, rival: Station, now_ns: u64) {
        let is_due = self.claims.contest(place, rival, now_ns);
        let frame = is_due.then(|| announcement(&self.hosts[place].link, rival.address));
        if let Some(frame) = frame.flatten() {
            self.queue(frame);
        }
    }

    /// Has a frame sent, if there is room for it.
    fn queue(&mut self, frame: Vec<u8>) -> bool {
        let has_room = self.waiting.len() < MOST_WAITING;
        if has_room {
            self.waiting.push_back(frame);
        } else {
            self.counts.dropped += 1;
        }
        has_room
    }

    /// Asks what is to be asked, and sends what waits; returns how many frames went.
    pub fn send(&mut self, port: &mut dyn Port, now_ns: u64) -> usize {
        self.ask(now_ns);
        let mut sent = 0;
        while sent < SENT_AT_ONCE {
            let Some(bytes) = self.waiting.front() else { break };
            // One that the port refuses is taken again in the next turn: few, and for a moment.
            if !self.sends.take(now_ns) || !send_one(port, bytes) {
                break;
            }
            self.waiting.pop_front();
            sent += 1;
        }
        sent += self.taps.send(port, now_ns);
        if sent > 0 {
            port.flush();
            self.counts.sent += sent as u64;
        }
        sent
    }

    /// Makes the questions whose time has come, while few frames wait.
    fn ask(&mut self, now_ns: u64) {
        while let Some((place, address)) = self.claims.settle(now_ns) {
            let begun = self.hosts[place].table.begin(address, now_ns);
            self.due.extend(begun.into_iter().map(|entry| Reverse((now_ns, place, entry))));
        }
        while self.waiting.len() < FEW_WAITING {
            let frame = if let Some((place, address)) = self.claims.ask(now_ns) {
                probe(&self.hosts[place].link, address)
            } else if let Some(Reverse((_, place, entry))) = self.due.peek().copied().filter(is_due(now_ns)) {
                self.ask_for(place, entry, now_ns)
            } else {
                match self.next_ping(now_ns) {
                    None => return,
                    frame => frame,
                }
            };
            if let Some(frame) = frame {
                self.counts.asked += 1;
                self.queue(frame);
            }
        }
    }

    /// Asks for the neighbour that is due first.
    fn ask_for(&mut self, place: usize, entry: usize, now_ns: u64) -> Option<Vec<u8>> {
        let Reverse((due_ns, ..)) = self.due.pop()?;
        let host = &mut self.hosts[place];
        if host.table.entries().get(entry).is_none_or(|entry| entry.due_ns != due_ns) {
            return None;
        }
        let asked = host.table.ask(entry, now_ns);
        self.due.push(Reverse((host.table.entries()[entry].due_ns, place, entry)));
        let (own, address, mac) = asked.filter(|(own, ..)| self.claims.is_used((place, *own)))?;
        question(&host.link, own, address, mac)
    }

    fn next_ping(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let (hosts, claims) = (&self.hosts, &self.claims);
        let way = |ping: &Ping| {
            let table = &hosts[ping.own.0].table;
            let known = table.find(ping.next_hop).map(|entry| &table.entries()[entry]);
            match (ping.mac, known) {
                _ if claims.is_given_up(ping.own) => Way::Closed,
                _ if !claims.is_used(ping.own) => Way::Sought,
                (Some(mac), _) => Way::By(mac),
                (None, Some(entry)) if entry.state == NeighbourState::Failed => Way::Closed,
                (None, Some(entry)) => entry.mac.map_or(Way::Sought, Way::By),
                (None, None) => Way::Closed,
            }
        };
        let (ping, mac, echoed) = self.pings.next(now_ns, way)?;
        echo_request(&self.hosts[ping.own.0].link, mac, ping.own.1, ping.to, echoed)
    }

    /// Has hosts ping, in the place of earlier pings. The numbers are those of the requests, whose hosts are others too.
    ///
    /// # Errors
    /// Where a host has no such address, or the addresses are no stations', or of two versions.
    pub fn ping(&mut self, requests: &[(u16, &PingRequest)], now_ns: u64) -> Result<(), EngineError> {
        let mut pings = Vec::new();
        for (number, request) in requests {
            let Ok(place) = self.hosts.binary_search_by_key(&request.host, |host| host.number) else { continue };
            let PingRequest { from, to, next_hop, .. } = *request;
            let is_one = |address: &IpAddr| !(address.is_multicast() || address.is_unspecified());
            let versions = [from.is_ipv4(), to.is_ipv4(), next_hop.is_ipv4()];
            let host = &mut self.hosts[place];
            if !host.addresses.contains(from) || !is_one(to) || versions != [from.is_ipv4(); 3] {
                let message = format!("ping {number}: {to} by {next_hop} is not to be pinged from {from}");
                return Err(refuse(message, "give an address of the host, and stations of the same version"));
            }
            let mac = request.mac.as_ref().map(|mac| parse_mac(mac, &format!("ping {number}"))).transpose()?;
            if mac.is_none() {
                let entry = host.table.want(*next_hop, *from, now_ns);
                self.due.extend(entry.map(|entry| Reverse((now_ns, place, entry))));
            }
            pings.push(Ping { number: *number, own: (place, *from), to: *to, next_hop: *next_hop, mac });
        }
        self.pings.begin(pings, now_ns);
        Ok(())
    }

    /// The number of each ping, and what became of it.
    pub fn pings(&self) -> impl Iterator<Item = (u16, PingState)> + '_ {
        self.pings.states()
    }

    /// Has gateways that did not answer asked again.
    pub fn retry(&mut self, now_ns: u64) {
        for (place, host) in self.hosts.iter_mut().enumerate() {
            self.due.extend(host.table.retry(now_ns).into_iter().map(|entry| Reverse((now_ns, place, entry))));
        }
    }

    /// Whether frames wait, or answers are expected.
    pub fn is_waiting(&self) -> bool {
        let expects = |host: &Host| host.table.entries().iter().any(table::Entry::is_waiting);
        let is_busy = !self.waiting.is_empty() || self.claims.is_any_unasked() || self.claims.tentative() > 0;
        is_busy || self.pings.is_waiting() || self.hosts.iter().any(expects)
    }

    /// When there is something to do next.
    pub fn next_ns(&self) -> Option<u64> {
        let due = self.due.peek().map(|Reverse((due_ns, ..))| *due_ns);
        let sends = !self.waiting.is_empty() || self.claims.is_any_unasked();
        let sends = sends.then(|| self.sends.next_ns());
        [due, sends, self.claims.next_ns(), self.pings.next_ns()].into_iter().flatten().min()
    }

    /// What the hosts know of others.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> + '_ {
        self.hosts.iter().flat_map(|host| {
            host.table.entries().iter().map(|entry| Neighbour {
                host: host.number,
                address: entry.address,
                mac: entry.mac.map(mac_text),
                state: entry.state,
            })
        })
    }

    /// Who else has their addresses.
    pub fn duplicates(&self) -> impl Iterator<Item = Duplicate> + '_ {
        self.claims.rivals().map(|((place, address), rival)| Duplicate {
            host: self.hosts[place].number,
            address,
            mac: mac_text(rival.mac),
            claims: rival.claims,
            is_given_up: rival.is_first,
        })
    }

    /// How many addresses are not used yet, since somebody else may have them.
    pub fn tentative(&self) -> usize {
        self.claims.tentative()
    }
}

impl Host {
    fn of(number: u32, request: &HostRequest) -> Result<Self, EngineError> {
        let mac = parse_mac(&request.mac, &format!("host {number}"))?;
        if mac[0] & 1 != 0 || mac == [0; 6] {
            return Err(refuse(format!("host {number}: {} is no station's address", request.mac), "give it another"));
        }
        if request.addresses.len() > MOST_ADDRESSES || request.tags.len() > MOST_TAGS {
            let message =
                format!("host {number} has {} addresses and {} tags", request.addresses.len(), request.tags.len());
            return Err(refuse(message, "give a host at most 64 addresses and 3 tags"));
        }
        let mut link = Vec::new();
        let mut ethernet = Ethernet::append(&mut link);
        ethernet.set(ethernet::SOURCE, mac);
        let mut vlans = Vlans::default();
        let is_tag = |tag: &&HostTag| vlan::is_tag(tag.tag_type) && tag.id < 4096 && tag.priority < 8;
        if request.tags.iter().filter(is_tag).count() < request.tags.len() {
            return Err(refuse(format!("host {number}: a tag is none"), "give type 0x8100, 0x88A8 or 0x9100"));
        }
        for (place, tag) in request.tags.iter().enumerate() {
            link = with_type(&link, tag.tag_type);
            let mut header = Vlan::append(&mut link);
            header.set(vlan::PRIORITY, tag.priority.into());
            header.set(vlan::ID, tag.id.into());
            vlans.0[place] = tag.id;
        }
        let addresses: Vec<IpAddr> = request.addresses.iter().map(|address| address.address).collect();
        let is_tapped = request.tap.is_some();
        Ok(Self { number, mac, vlans, link, addresses, table: Table::default(), is_tapped })
    }
}

impl Vlans {
    /// Those of a frame, whose tags end at byte `network`; `None` where they are more than hosts have.
    fn of(frame: &[u8], network: usize) -> Option<Self> {
        let mut vlans = Self::default();
        let mut place = 0;
        for at in (Ethernet::BYTES..network).step_by(Vlan::BYTES) {
            // IEEE 802.1Q 9.6, table 9-2: a tag of VLAN 0 has only a priority.
            let id = Vlan::at(frame, at)?.get(vlan::ID) as u16;
            if id != 0 {
                *vlans.0.get_mut(place)? = id;
                place += 1;
            }
        }
        Some(vlans)
    }
}

/// Whether the time of an entry of the queue has come.
fn is_due(now_ns: u64) -> impl Fn(&Reverse<(u64, usize, usize)>) -> bool {
    move |Reverse((due_ns, ..))| *due_ns <= now_ns
}

fn refuse(message: String, next: &str) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, message, next)
}

#[cfg(test)]
mod tests;
