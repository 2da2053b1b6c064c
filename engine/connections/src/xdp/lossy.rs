//! Both ends over a path that loses, repeats and reorders segments and narrows windows, by a seed: the programs in the
//! kernel do, segment by segment, what the model does, and every connection ends in one way. Time passes when the path is
//! quiet.

use std::fmt::Debug;
use std::net::IpAddr;
use std::os::fd::RawFd;

use nicbench_bpf::{Area, test_frame};

use super::hook::{End, Hook, Link};
use super::model::{self, ACK, Asked, FIN, PSH, Segment, Terms};
use super::records::{Client, RECORDS_A_BUCKET, Request, Server, Work, counter, flag, kind, state, state_of};
use super::sender::BLANK;

pub const CONNECTIONS: u16 = 12;
/// Threads of the client, each with connections of its own.
const SENDERS: usize = 2;
const FIRST_LOCAL: u16 = 1024;
const PORT: u16 = 8080;
const RECORDS: usize = 32 * RECORDS_A_BUCKET;
const XDP_REDIRECT: u32 = 4;
const LINK: usize = 14;
const TCP: usize = LINK + 20;
/// A server sends a segment so often.
const MOST_TRIES: u8 = 5;
/// More segments than any case has: a loop shows.
const MOST_STEPS: usize = 50_000;

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % bound
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// How a path treats segments: how many of a thousand it loses, repeats and narrows, and how many may be overtaken.
#[derive(Debug, Clone, Copy)]
struct Path {
    lost: u64,
    repeated: u64,
    narrowed: u64,
    overtaken: u64,
    /// How often a client asks before it gives up.
    patience: u32,
}

/// A client and a server.
pub trait Ends {
    type Packet: Clone + Debug;
    fn deliver(&mut self, to_client: bool, packet: &Self::Packet) -> Vec<Self::Packet>;
    fn ask(&mut self, client: bool, port: u16, asked: Asked) -> Vec<Self::Packet>;
    /// State, and two numbers that change when it gets on.
    fn client_state(&self, port: u16) -> (u32, u32, u32);
    /// State, and how often what waits was sent.
    fn server_state(&self, port: u16) -> (u32, u8);
    fn narrow(packet: &mut Self::Packet, window: u16);
    /// Connection, flags, bytes and window.
    fn describe(packet: &Self::Packet) -> (u16, u8, u32, u16);
    fn counts(&self) -> [model::Counts; 2];
}

struct Modelled {
    client: model::Client,
    server: model::Server,
}

impl Ends for Modelled {
    type Packet = Segment;

    fn deliver(&mut self, to_client: bool, packet: &Segment) -> Vec<Segment> {
        if to_client { self.client.receive(packet) } else { self.server.receive(packet) }
    }

    fn ask(&mut self, client: bool, port: u16, asked: Asked) -> Vec<Segment> {
        if client { self.client.ask(port, asked) } else { self.server.ask(port, asked) }
    }

    fn client_state(&self, port: u16) -> (u32, u32, u32) {
        self.client.state(port)
    }

    fn server_state(&self, port: u16) -> (u32, u8) {
        self.server.state(port)
    }

    fn narrow(packet: &mut Segment, window: u16) {
        packet.window = window;
    }

    fn describe(packet: &Segment) -> (u16, u8, u32, u16) {
        (packet.port, packet.flags, packet.bytes, packet.window)
    }

    fn counts(&self) -> [model::Counts; 2] {
        [self.client.counts, self.server.counts]
    }
}

/// The programs in the kernel; no frame of them leaves.
pub struct Hooked {
    client: Hook,
    server: Hook,
    clients: Area<Client>,
    servers: Area<Server>,
    terms: Terms,
    /// Segments that the program for copies would have written.
    copied: u64,
}

impl Hooked {
    pub fn load() -> Self {
        let (own, peer): (IpAddr, IpAddr) = ("198.18.0.10".parse().unwrap(), "198.18.1.10".parse().unwrap());
        let on = Link { interface: "lo".to_owned(), vlan: None };
        let mut client =
            Hook::load(&on, End::Client { records: u32::from(CONNECTIONS), senders: SENDERS }, own).unwrap();
        let mut server = Hook::load(&on, End::Server((RECORDS / RECORDS_A_BUCKET) as u32), peer).unwrap();
        if let IpAddr::V4(peer) = peer {
            client.wanted.peer[..4].copy_from_slice(&peer.octets());
        }
        for hook in [&mut client, &mut server] {
            hook.wanted.first_port = PORT;
            hook.wanted.ports = 1;
            hook.fill_bodies().unwrap();
        }
        (client.wanted.first_local, client.wanted.locals) = (FIRST_LOCAL, CONNECTIONS);
        server.wanted.buckets = (RECORDS / RECORDS_A_BUCKET) as u32;
        let clients = client.clients(usize::from(CONNECTIONS)).unwrap();
        let servers = server.servers(RECORDS).unwrap();
        let terms = Terms { request: 0, last_request: 0, body: 0, exchanges: 1, resets: false, segment: 1460 };
        Self { client, server, clients, servers, terms, copied: 0 }
    }

    /// Forgets everything, and begins on other terms.
    pub fn begin(&mut self, terms: Terms) {
        let text = |last: bool| {
            let end = if last { "Connection: close\r\n" } else { "" };
            format!("GET /bytes/{} HTTP/1.1\r\nHost: x\r\n{end}\r\n", terms.body).into_bytes()
        };
        assert_eq!((text(false).len(), text(true).len()), (terms.request as usize, terms.last_request as usize));
        self.client.set_requests(&[Request::new(&text(false), &text(true), terms.body).unwrap()]).unwrap();
        self.client.wanted.resets = u32::from(terms.resets);
        for hook in [&mut self.client, &mut self.server] {
            hook.wanted.segment_bytes = terms.segment;
            hook.forget_counts();
            hook.publish();
        }
        (0..usize::from(CONNECTIONS)).for_each(|slot| self.clients.set(slot, Client::default()));
        (0..RECORDS).for_each(|slot| self.servers.set(slot, Server::default()));
        (self.terms, self.copied) = (terms, 0);
    }

    /// Has a sender do something with its next run: the program, and the frame that it begins with.
    pub fn put(&mut self, client: bool, port: u16, asked: Asked) -> (RawFd, Vec<u8>) {
        let kind = match asked {
            Asked::Open => kind::OPEN,
            Asked::Resend => kind::RESEND,
            Asked::GiveUp => kind::GIVE_UP,
        };
        let mut work = Work { kind, flags: flag::CLOSES, exchanges: self.terms.exchanges, ..Work::default() };
        let mut sender = 0;
        if client {
            let record = self.clients.get(usize::from(port));
            sender = usize::from(port) % SENDERS;
            (work.slot, work.usage, work.sent) = (u32::from(port), record.usage(), record.sent);
        } else {
            let slot = self.record_of(port).unwrap();
            (work.slot, work.usage) = (slot as u32, u16::from(self.servers.get(slot).tries));
        }
        let hook = if client { &mut self.client } else { &mut self.server };
        hook.rings.set_away(sender, model::was_away(port));
        hook.rings.send_now(sender, work);
        hook.publish();
        (hook.sender, vec![0; BLANK.len() + sender])
    }

    /// The programs that get the client's frames, and the server's.
    pub fn receivers(&self) -> (RawFd, RawFd) {
        (self.client.receiver, self.server.receiver)
    }

    fn record_of(&self, port: u16) -> Option<usize> {
        let ports = u64::from(FIRST_LOCAL + port) << 16 | u64::from(PORT);
        (0..RECORDS).find(|&slot| {
            let key = self.servers.get(slot).key;
            key != 0 && key & 0xFFFF_FFFF == ports
        })
    }

    /// Returns the frames that a run of a program sends: one frame, or a burst.
    pub fn sent(&mut self, (verdict, frame): (u32, Vec<u8>)) -> Vec<Vec<u8>> {
        if verdict != XDP_REDIRECT {
            return Vec::new();
        }
        if frame[12..14] != [0x88, 0xB5] {
            return vec![frame];
        }
        let word = |at: usize| u32::from_ne_bytes(frame[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_ne_bytes(frame[at..at + 2].try_into().unwrap());
        // `struct copy`, whose last is a `struct part`.
        let (sequence, acknowledged, client) = (word(40 + 8), word(40 + 12), half(40 + 22));
        let (from, to, most, body) = (word(72), word(76), word(80), word(84));
        let (ends, is_last) = (half(88) != 0, half(90) != 0);
        let connection = if ends { "Connection:  close\r\n" } else { "" };
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {body:07}\r\n{connection}\r\n").into_bytes();
        answer.resize(answer.len() + body as usize, crate::FILLING);
        let starts: Vec<u32> = (from..to.max(from + 1)).step_by(most as usize).collect();
        assert_eq!(starts.len(), usize::from(half(14)));
        self.copied += starts.len() as u64;
        starts
            .into_iter()
            .map(|at| {
                let end = (at + most).min(to);
                let is_end = end == to;
                let flags = ACK | (u8::from(is_end) * PSH) | (u8::from(is_end && is_last) * FIN);
                let data = &answer[at as usize..end as usize];
                frame_of_server(client, flags, sequence.wrapping_add(at), acknowledged, data)
            })
            .collect()
    }
}

fn frame_of_server(client: u16, flags: u8, sequence: u32, acknowledged: u32, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; LINK];
    frame[12] = 0x08;
    let addresses = [198, 18, 1, 10, 198, 18, 0, 10];
    frame.extend([0x45, 0]);
    frame.extend(((40 + data.len()) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(addresses);
    frame.extend(PORT.to_be_bytes());
    frame.extend(client.to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledged.to_be_bytes());
    frame.extend([0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
    frame.extend(data);
    write_checksum(&mut frame);
    frame
}

fn write_checksum(frame: &mut [u8]) {
    let length = (frame.len() - TCP) as u32;
    frame[TCP + 16..TCP + 18].fill(0);
    let words = frame[LINK + 12..].chunks(2);
    let sum: u32 = words.map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum();
    let mut sum = sum + length + 6;
    while sum >> 16 > 0 {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    frame[TCP + 16..TCP + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

impl Ends for Hooked {
    type Packet = Vec<u8>;

    fn deliver(&mut self, to_client: bool, packet: &Vec<u8>) -> Vec<Vec<u8>> {
        let hook = if to_client { &self.client } else { &self.server };
        let done = test_frame(hook.receiver, packet).unwrap();
        self.sent(done)
    }

    fn ask(&mut self, client: bool, port: u16, asked: Asked) -> Vec<Vec<u8>> {
        let (program, blank) = self.put(client, port, asked);
        let done = test_frame(program, &blank).unwrap();
        self.sent(done)
    }

    fn client_state(&self, port: u16) -> (u32, u32, u32) {
        let it = self.clients.get(usize::from(port));
        (it.state(), it.next, it.expected)
    }

    fn server_state(&self, port: u16) -> (u32, u8) {
        self.record_of(port).map_or((state::FREE, 0), |slot| {
            let it = self.servers.get(slot);
            (state_of(it.control), it.tries)
        })
    }

    fn narrow(packet: &mut Vec<u8>, window: u16) {
        packet[TCP + 14..TCP + 16].copy_from_slice(&window.to_be_bytes());
        write_checksum(packet);
    }

    fn describe(packet: &Vec<u8>) -> (u16, u8, u32, u16) {
        let half = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let port = half(TCP).min(half(TCP + 2)) - FIRST_LOCAL; // the server's is higher
        let data = packet.len() - TCP - usize::from(packet[TCP + 12] >> 4) * 4;
        (port, packet[TCP + 13], data as u32, half(TCP + 14))
    }

    fn counts(&self) -> [model::Counts; 2] {
        let mut both = [&self.client, &self.server].map(|hook| hook.counts().try_into().unwrap());
        let [_, server]: &mut [model::Counts; 2] = &mut both;
        server[counter::SENT] += self.copied;
        both
    }
}

type Sight = (bool, (u16, u8, u32, u16));

/// Plays a case to its end: the segments in their order.
fn play<E: Ends>(ends: &mut E, path: Path, seed: u64) -> Vec<Sight> {
    let mut draws = Draws(seed);
    let mut under_way: Vec<(bool, E::Packet)> = Vec::new();
    let mut seen = Vec::new();
    let mut looks = vec![((0, 0, 0), 0); usize::from(CONNECTIONS)];
    let add = |under_way: &mut Vec<_>, to_client: bool, packets: Vec<E::Packet>| {
        under_way.extend(packets.into_iter().map(|packet| (to_client, packet)));
    };
    for port in 0..CONNECTIONS {
        let packets = ends.ask(true, port, Asked::Open);
        add(&mut under_way, false, packets);
    }
    loop {
        while !under_way.is_empty() {
            let at = draws.below((path.overtaken + 1).min(under_way.len() as u64)) as usize;
            let (to_client, mut packet) = under_way.remove(at);
            if draws.below(1000) < path.lost {
                continue;
            }
            if draws.below(1000) < path.repeated {
                under_way.push((to_client, packet.clone()));
            }
            if draws.below(1000) < path.narrowed {
                E::narrow(&mut packet, draws.one_of(&[0, 20, 60, 300, 1000, 5000]));
            }
            seen.push((to_client, E::describe(&packet)));
            assert!(seen.len() < MOST_STEPS, "it does not end: {:?}", &seen[seen.len() - 20..]);
            let packets = ends.deliver(to_client, &packet);
            add(&mut under_way, !to_client, packets);
        }
        let is_open = (0..CONNECTIONS).any(|port| ends.client_state(port).0 != state::FREE);
        for port in 0..CONNECTIONS {
            let now = ends.client_state(port);
            let (before, tries) = &mut looks[usize::from(port)];
            *tries = if *before == now { *tries + 1 } else { 1 };
            *before = now;
            let asked = match (now.0, *tries > path.patience) {
                (state::FREE | state::IDLE, _) | (state::CLOSING, false) => None,
                (_, true) => Some(Asked::GiveUp),
                (_, false) => Some(Asked::Resend),
            };
            let packets = asked.map(|asked| ends.ask(true, port, asked)).unwrap_or_default();
            add(&mut under_way, false, packets);
            let asked = match ends.server_state(port) {
                (_, 0) => None,
                (state::CLOSING, _) => (!is_open).then_some(Asked::GiveUp),
                (_, tries) if tries > MOST_TRIES => Some(Asked::GiveUp),
                _ => Some(Asked::Resend),
            };
            let packets = asked.map(|asked| ends.ask(false, port, asked)).unwrap_or_default();
            add(&mut under_way, true, packets);
        }
        let waits = (0..CONNECTIONS).any(|port| ends.server_state(port).1 > 0);
        if under_way.is_empty() && !is_open && !waits {
            return seen;
        }
    }
}

fn case_of(seed: u64) -> (Terms, Path) {
    let mut draws = Draws(seed ^ 0x5EED);
    let body = draws.one_of(&[0, 1, 1000, 1396, 1397, 5000, 20_000, 65_536]);
    let request = 33 + u32::try_from(body.to_string().len()).unwrap();
    let terms = Terms {
        request,
        last_request: request + 19,
        body,
        exchanges: draws.one_of(&[1, 1, 2, 3]),
        resets: draws.below(4) == 0,
        segment: draws.one_of(&[64, 536, 1460]).max(if body > 5000 { 536 } else { 0 }),
    };
    let path = Path {
        lost: draws.one_of(&[0, 10, 50, 200, 500]),
        repeated: draws.one_of(&[0, 0, 50, 200]),
        narrowed: draws.one_of(&[0, 0, 0, 100]),
        overtaken: draws.one_of(&[0, 0, 1, 5, 20]),
        patience: draws.one_of(&[2, 8, 30]),
    };
    (terms, path)
}

#[test]
fn every_connection_ends_as_the_model_says_whatever_the_path_does() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: nothing was tested");
        return;
    }
    let mut hooked = Hooked::load();
    let mut failed = 0;
    for seed in 0..1000 {
        let (terms, path) = case_of(seed);
        let connections = usize::from(CONNECTIONS);
        let mut modelled =
            Modelled { client: model::Client::new(terms, connections), server: model::Server::new(terms, connections) };
        let expected = play(&mut modelled, path, seed);
        hooked.begin(terms);
        let seen = play(&mut hooked, path, seed);
        if let Some(at) = (0..seen.len().max(expected.len())).find(|&at| seen.get(at) != expected.get(at)) {
            let from = at.saturating_sub(30);
            panic!(
                "seed {seed}, {terms:?}, {path:?}: segment {at} is {:?} in place of {:?} after {:#?}",
                seen.get(at),
                expected.get(at),
                seen[from..at].iter().map(|sight| format!("{sight:?}")).collect::<Vec<_>>()
            );
        }
        assert_eq!(hooked.counts(), modelled.counts(), "seed {seed}, {terms:?}, {path:?}");
        let [client, _] = hooked.counts();
        let failures: u64 = client[counter::FAILED..].iter().sum();
        assert_eq!(client[counter::COMPLETED] + failures, u64::from(CONNECTIONS), "seed {seed}");
        assert_eq!(client[counter::DAMAGED], 0, "seed {seed}");
        if path.lost == 0 {
            assert!(failures == 0 || path.patience < 8, "seed {seed}: {failures} failed, {terms:?}, {path:?}");
        }
        failed += failures;
    }
    assert!(failed > 0);
}
