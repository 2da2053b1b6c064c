//! The hosts beside the flows: of each port, and the requests about them.

use std::collections::HashMap;

use nicbench_protocol::{
    HostRequest, Hosts, HostsReply, Neighbour, Neighbours, NeighboursReply, Ping, PingReply, PingState, Reply,
};

use super::{Bench, Generator};
use crate::error::{EngineError, ErrorKind};
use crate::hosts::{MOST_PINGS, PortHosts};
use crate::port::Clock;

/// The hosts of all ports, in the order of the ports.
#[derive(Debug)]
pub struct Stations {
    ports: Vec<PortHosts>,
    is_any: bool,
    asked_pings: usize,
}

impl Stations {
    /// No hosts yet, at this number of ports.
    pub fn new(ports: usize) -> Self {
        Self { ports: (0..ports).map(|_| PortHosts::default()).collect(), is_any: false, asked_pings: 0 }
    }

    /// Whether there is a host anywhere.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.is_any
    }

    /// Takes a frame of no flow that arrived at a port, and returns whether it was meant for a host.
    #[cold]
    pub fn receive(&mut self, port: usize, frame: &[u8], now_ns: u64) -> bool {
        self.is_any && self.ports[port].receive(frame, now_ns)
    }

    /// Sends what hosts have to say; returns how many frames went.
    pub fn send(&mut self, bench: &mut Bench<'_>) -> usize {
        let now_ns = bench.clock.nanoseconds(bench.clock.now());
        let ports = self.ports.iter_mut().zip(bench.ports.iter_mut()).filter(|(hosts, _)| !hosts.is_empty());
        ports.map(|(hosts, port)| hosts.send(&mut **port, now_ns)).sum()
    }

    /// Frames that hosts sent by a port.
    pub fn sent(&self, port: usize) -> u64 {
        self.ports[port].counts.sent
    }

    /// Whether answers are expected, or frames wait.
    pub fn is_waiting(&self) -> bool {
        self.is_any && self.ports.iter().any(PortHosts::is_waiting)
    }

    /// The tick at which there is something to do next.
    pub fn next_tick(&self, clock: &dyn Clock) -> Option<u64> {
        let next_ns = self.ports.iter().filter_map(PortHosts::next_ns).min()?;
        Some((next_ns as f64 * clock.hz() / 1e9).ceil() as u64 + 1)
    }

    fn replace(&mut self, request: &Hosts, now_ns: u64) -> Result<HostsReply, EngineError> {
        let known = self.ports.len();
        let ports = |host: &HostRequest| [&[host.port], host.further_ports.as_slice()].concat();
        if let Some(host) = request.hosts.iter().position(|host| ports(host).iter().any(|port| *port >= known)) {
            let message = format!("host {host}: ports {:?}, and there are {known} ports", ports(&request.hosts[host]));
            return Err(EngineError::new(ErrorKind::BadRequest, message, "use a port's number, from 0"));
        }
        let mut fresh = Vec::new();
        for (port, hosts) in self.ports.iter().enumerate() {
            let own = (0..).zip(&request.hosts).filter(|(_, host)| ports(host).contains(&port)).collect::<Vec<_>>();
            fresh.push(hosts.replaced(&own, now_ns)?);
        }
        self.ports = fresh;
        self.is_any = !request.hosts.is_empty();
        self.asked_pings = 0;
        Ok(HostsReply { hosts: request.hosts.len() as u32 })
    }

    fn tables(&mut self, request: &Neighbours, now_ns: u64) -> NeighboursReply {
        if request.ask_again {
            self.ports.iter_mut().for_each(|hosts| hosts.retry(now_ns));
        }
        let mut neighbours: Vec<_> = self.ports.iter().flat_map(PortHosts::neighbours).collect();
        let mut duplicates: Vec<_> = self.ports.iter().flat_map(PortHosts::duplicates).collect();
        // In the order of the hosts; the sort keeps that of each host's entries.
        neighbours.sort_by_key(|neighbour| neighbour.host);
        duplicates.sort_by_key(|duplicate| (duplicate.host, duplicate.address));
        NeighboursReply {
            neighbours: told_once(neighbours),
            duplicates,
            tentative: self.ports.iter().map(|hosts| hosts.tentative() as u32).sum(),
            pings: self.pings(),
            counts: self.ports.iter().map(|hosts| hosts.counts).collect(),
        }
    }

    fn ping(&mut self, request: &Ping, now_ns: u64) -> Result<PingReply, EngineError> {
        if request.pings.len() > MOST_PINGS {
            let message = format!("there are {} pings", request.pings.len());
            return Err(EngineError::new(ErrorKind::BadRequest, message, "ask for at most 1024 at once"));
        }
        let numbered: Vec<_> = (0..).zip(&request.pings).collect();
        self.ports.iter_mut().try_for_each(|hosts| hosts.ping(&numbered, now_ns))?;
        self.asked_pings = request.pings.len();
        Ok(PingReply { pings: request.pings.len() as u32 })
    }

    /// Of a host at several ports, one answer is enough; who has no host fails.
    fn pings(&self) -> Vec<PingState> {
        let mut states = vec![PingState::Failed; self.asked_pings];
        for (number, state) in self.ports.iter().flat_map(PortHosts::pings) {
            let told = &mut states[usize::from(number)];
            *told = match (*told, state) {
                (PingState::Answered, _) | (_, PingState::Answered) => PingState::Answered,
                (PingState::Waiting, _) | (_, PingState::Waiting) => PingState::Waiting,
                _ => PingState::Failed,
            };
        }
        states
    }
}

/// Keeps one entry for each neighbour of a host at several ports: that of the first port with an answer.
fn told_once(neighbours: Vec<Neighbour>) -> Vec<Neighbour> {
    let mut places = HashMap::new();
    let mut told: Vec<Neighbour> = Vec::new();
    for each in neighbours {
        let place = *places.entry((each.host, each.address)).or_insert(told.len());
        match told.get_mut(place) {
            None => told.push(each),
            Some(known) if known.mac.is_none() => *known = each,
            Some(_) => {}
        }
    }
    told
}

impl Generator {
    /// Replaces all hosts, beside the flows.
    pub fn host(&mut self, id: i64, request: &Hosts, bench: &Bench<'_>) {
        let result = self.stations.replace(request, bench.clock.nanoseconds(bench.clock.now()));
        self.replies.reply_with(id, move || result.map(Reply::Hosts));
    }

    /// Tells what hosts know of their neighbours.
    pub fn neighbours(&mut self, id: i64, request: &Neighbours, bench: &Bench<'_>) {
        let tables = self.stations.tables(request, bench.clock.nanoseconds(bench.clock.now()));
        self.replies.reply_with(id, move || Ok(Reply::Neighbours(tables)));
    }

    /// Has hosts ping.
    pub fn ping(&mut self, id: i64, request: &Ping, bench: &Bench<'_>) {
        let result = self.stations.ping(request, bench.clock.nanoseconds(bench.clock.now()));
        self.replies.reply_with(id, move || result.map(Reply::Ping));
    }
}
