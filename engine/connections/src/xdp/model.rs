//! Both ends as plain Rust: the states, answers and counts of `bpf/client.h` and `bpf/server.h`, which are compared with it.

use super::records::{counter, state};

pub const FIN: u8 = 0x01;
pub const SYN: u8 = 0x02;
pub const RST: u8 = 0x04;
pub const PSH: u8 = 0x08;
pub const ACK: u8 = 0x10;
/// The last state, of an end whose FIN is sent (`enum state`).
const LAST_ACK: u32 = 5;
/// Numbers of `enum failure`.
const REFUSED: usize = 0;
const CONNECT_TIMEOUT: usize = 2;
const RESET: usize = 3;
const SHORT: usize = 4;
const RESPONSE_TIMEOUT: usize = 5;
const LENGTH: usize = 7;
const LATE: usize = 11;
const HEAD: u32 = 44;
const CLOSING_HEAD: u32 = 64;

/// A segment of connection number `port`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    pub port: u16,
    pub flags: u8,
    pub sequence: u32,
    pub acknowledged: u32,
    pub bytes: u32,
    pub window: u16,
}

impl Segment {
    fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// What the process asks of an end, in place of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Open,
    Resend,
    GiveUp,
}

/// What both ends of a path know of each other.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub request: u32,
    pub last_request: u32,
    pub body: u32,
    pub exchanges: u16,
    pub resets: bool,
    pub segment: u32,
}

/// Whether connection number `port` is begun when its sender had been away.
pub fn was_away(port: u16) -> bool {
    port.is_multiple_of(3)
}

impl Terms {
    fn request(&self, exchanges: u16) -> u32 {
        if exchanges == 1 && !self.resets { self.last_request } else { self.request }
    }
}

pub type Counts = [u64; counter::COUNTERS];

#[derive(Debug, Clone, Copy, Default)]
struct Asking {
    state: u32,
    next: u32,
    expected: u32,
    left: Option<u32>,
    exchanges: u16,
    acknowledged: bool,
    narrow: bool,
}

/// The client.
#[derive(Debug)]
pub struct Client {
    terms: Terms,
    connections: Vec<Asking>,
    pub counts: Counts,
}

impl Client {
    pub fn new(terms: Terms, connections: usize) -> Self {
        Self { terms, connections: vec![Asking::default(); connections], counts: [0; counter::COUNTERS] }
    }

    pub fn state(&self, port: u16) -> (u32, u32, u32) {
        let it = self.connections[usize::from(port)];
        (it.state, it.next, it.expected)
    }

    fn send(&mut self, port: u16, flags: u8, sequence: u32, acknowledged: u32, bytes: u32) -> Vec<Segment> {
        self.counts[counter::SENT] += 1;
        vec![Segment { port, flags, sequence, acknowledged, bytes, window: u16::MAX }]
    }

    fn bare(&mut self, port: u16, flags: u8) -> Vec<Segment> {
        let it = self.connections[usize::from(port)];
        self.send(port, flags, it.next, it.expected, 0)
    }

    fn end(&mut self, port: u16) {
        let it = &mut self.connections[usize::from(port)];
        self.counts[counter::ENDED] += u64::from(it.state != state::OPENING);
        it.state = state::FREE;
    }

    fn fail(&mut self, port: u16, failure: usize) {
        self.end(port);
        let failure = if was_away(port) && failure <= CONNECT_TIMEOUT { LATE } else { failure };
        self.counts[counter::FAILED + 2 * failure] += 1;
    }

    pub fn ask(&mut self, port: u16, asked: Asked) -> Vec<Segment> {
        let it = &mut self.connections[usize::from(port)];
        match (asked, it.state) {
            (Asked::Open, _) => {
                *it = Asking { state: state::OPENING, next: 1, exchanges: self.terms.exchanges, ..Asking::default() };
                self.send(port, SYN, 0, 0, 0)
            }
            (Asked::Resend, state::OPENING) => {
                self.counts[counter::RESENT] += 1;
                let next = it.next;
                self.send(port, SYN, next - 1, 0, 0)
            }
            (Asked::Resend, state::ASKED) if !it.acknowledged => {
                self.counts[counter::RESENT] += 1;
                let (at, expected) = (*it, it.expected);
                if at.narrow {
                    return self.send(port, ACK, at.next - 1, expected, 0);
                }
                let bytes = self.terms.request(at.exchanges);
                self.send(port, ACK | PSH, at.next - bytes, expected, bytes)
            }
            (Asked::Resend, LAST_ACK) => {
                self.counts[counter::RESENT] += 1;
                let (next, expected) = (it.next, it.expected);
                self.send(port, FIN | ACK, next - 1, expected, 0)
            }
            (Asked::GiveUp, state::OPENING) => {
                self.fail(port, CONNECT_TIMEOUT);
                Vec::new()
            }
            (Asked::GiveUp, state::ASKED) => {
                self.fail(port, RESPONSE_TIMEOUT);
                self.bare(port, RST | ACK)
            }
            (Asked::GiveUp, now) if now != state::FREE => {
                self.end(port);
                self.bare(port, RST | ACK)
            }
            _ => Vec::new(),
        }
    }

    /// Begins an exchange; its request waits where the window is too small.
    fn request(&mut self, port: u16, window: u16) -> Vec<Segment> {
        let it = &mut self.connections[usize::from(port)];
        let bytes = self.terms.request(it.exchanges);
        (it.state, it.acknowledged, it.left) = (state::ASKED, false, None);
        it.narrow = u32::from(window) < bytes;
        if it.narrow {
            return self.bare(port, ACK);
        }
        let (at, expected) = (it.next, it.expected);
        it.next += bytes;
        self.send(port, ACK | PSH, at, expected, bytes)
    }

    pub fn receive(&mut self, segment: &Segment) -> Vec<Segment> {
        let port = segment.port;
        let mut it = self.connections[usize::from(port)];
        if it.state == state::FREE {
            self.counts[counter::NOT_EXPECTED] += 1;
            if segment.has(RST) || !segment.has(ACK) {
                return Vec::new();
            }
            return self.send(port, RST, segment.acknowledged, 0, 0);
        }
        if segment.has(RST) {
            let is_next = segment.sequence == it.expected;
            match it.state {
                state::OPENING if segment.acknowledged == it.next => self.fail(port, REFUSED),
                state::ASKED if is_next => self.fail(port, RESET),
                state::IDLE | state::CLOSING | LAST_ACK if is_next => self.end(port),
                _ => self.counts[counter::NOT_EXPECTED] += 1,
            }
            return Vec::new();
        }
        if it.state == state::OPENING {
            if !segment.has(SYN | ACK) || segment.acknowledged != it.next {
                self.counts[counter::NOT_EXPECTED] += 1;
                return if segment.has(ACK) { self.send(port, RST, segment.acknowledged, 0, 0) } else { Vec::new() };
            }
            self.counts[counter::OPENED] += 1;
            self.connections[usize::from(port)].expected = segment.sequence + 1;
            return self.request(port, segment.window);
        }
        if segment.acknowledged == it.next && !it.acknowledged && !(it.state == state::ASKED && it.narrow) {
            if it.state == LAST_ACK {
                self.end(port);
                return Vec::new();
            }
            it.acknowledged = true;
            self.connections[usize::from(port)] = it;
        }
        if segment.bytes == 0 && !segment.has(FIN) && !segment.has(SYN) {
            if segment.sequence + 1 == it.expected {
                return self.bare(port, ACK);
            }
            let is_wide = u32::from(segment.window) >= self.terms.request(it.exchanges);
            if it.narrow && segment.sequence == it.expected && it.state == state::ASKED && is_wide {
                return self.request(port, segment.window);
            }
            return Vec::new();
        }
        if segment.sequence != it.expected || segment.has(SYN) {
            self.counts[counter::REPEATED] += 1;
            return self.bare(port, ACK);
        }
        if it.state == state::ASKED {
            return self.take(segment);
        }
        if segment.bytes > 0 || it.state == LAST_ACK {
            self.counts[counter::NOT_EXPECTED] += 1;
            self.end(port);
            return self.bare(port, RST | ACK);
        }
        let (next, expected) = (it.next, it.expected + 1);
        self.connections[usize::from(port)] =
            Asking { state: LAST_ACK, next: next + 1, expected, acknowledged: false, ..it };
        self.send(port, FIN | ACK, next, expected, 0)
    }

    /// Data, or the end of the stream, in its order while an answer is expected.
    fn take(&mut self, segment: &Segment) -> Vec<Segment> {
        let port = segment.port;
        let it = &mut self.connections[usize::from(port)];
        let is_end = segment.has(FIN);
        let mut failure = None;
        if segment.bytes > 0 {
            let is_last = it.exchanges == 1 && !self.terms.resets;
            let head = if it.left.is_some() {
                0
            } else if is_last {
                CLOSING_HEAD
            } else {
                HEAD
            };
            let left = it.left.unwrap_or(self.terms.body);
            let body = segment.bytes - head;
            it.left = Some(left);
            if body > left {
                failure = Some(LENGTH);
            } else {
                it.left = Some(left - body);
                self.counts[counter::ALL_BYTES] += u64::from(body);
            }
        }
        it.expected += segment.bytes + u32::from(is_end);
        if failure.is_none() && it.left == Some(0) {
            return self.complete(port, is_end, segment.window);
        }
        if let Some(failure) = failure.or(is_end.then_some(SHORT)) {
            self.fail(port, failure);
            return self.bare(port, RST | ACK);
        }
        self.bare(port, ACK)
    }

    fn complete(&mut self, port: u16, is_end: bool, window: u16) -> Vec<Segment> {
        let it = &mut self.connections[usize::from(port)];
        it.exchanges -= 1;
        if it.exchanges > 0 && !is_end {
            return self.request(port, window);
        }
        if it.exchanges > 0 {
            self.fail(port, SHORT);
            return self.bare(port, RST | ACK);
        }
        self.counts[counter::COMPLETED] += 1;
        if self.terms.resets {
            self.end(port);
            return self.bare(port, RST | ACK);
        }
        it.state = state::CLOSING;
        if !is_end {
            return self.bare(port, ACK);
        }
        let (next, expected) = (it.next, it.expected);
        *it = Asking { state: LAST_ACK, next: next + 1, acknowledged: false, ..*it };
        self.send(port, FIN | ACK, next, expected, 0)
    }
}

/// Segments that are under way at most, and that are sent at once.
const MOST_SEGMENTS: u32 = 10;
const MOST_COPIES: u32 = 4;
const MOST_UNDER_WAY: u32 = 32_000;
const REPEATS_OF_LOSS: u32 = 3;
const LEAST_WINDOW: u32 = 64;

#[derive(Debug, Clone, Copy, Default)]
struct Answering {
    state: u32,
    first: u32,
    expected: u32,
    acknowledged: u32,
    under_way: u32,
    repeats: u32,
    tries: u8,
    is_last: bool,
    is_ended: bool,
    is_shut: bool,
}

impl Answering {
    fn head(&self) -> u32 {
        if self.is_last { CLOSING_HEAD } else { HEAD }
    }

    fn whole(&self, body: u32) -> u32 {
        if self.state == state::ASKED { self.head() + body } else { 0 }
    }

    fn has_end(&self) -> bool {
        self.state == LAST_ACK || (self.state == state::ASKED && (self.is_last || self.is_ended))
    }

    fn sent(&self) -> u32 {
        self.first + self.acknowledged + self.under_way
    }
}

/// The server.
#[derive(Debug)]
pub struct Server {
    terms: Terms,
    connections: Vec<Answering>,
    pub counts: Counts,
}

impl Server {
    pub fn new(terms: Terms, connections: usize) -> Self {
        Self { terms, connections: vec![Answering::default(); connections], counts: [0; counter::COUNTERS] }
    }

    /// State, and how often what waits was sent.
    pub fn state(&self, port: u16) -> (u32, u8) {
        let it = self.connections[usize::from(port)];
        (it.state, it.tries)
    }

    fn send(&mut self, port: u16, flags: u8, sequence: u32, acknowledged: u32, bytes: u32) -> Vec<Segment> {
        self.counts[counter::SENT] += 1;
        vec![Segment { port, flags, sequence, acknowledged, bytes, window: u16::MAX }]
    }

    fn free(&mut self, port: u16) {
        self.connections[usize::from(port)] = Answering::default();
        self.counts[counter::ENDED] += 1;
    }

    pub fn ask(&mut self, port: u16, asked: Asked) -> Vec<Segment> {
        let it = &mut self.connections[usize::from(port)];
        if asked == Asked::GiveUp {
            let (sent, expected) = (it.sent(), it.expected);
            self.free(port);
            return self.send(port, RST | ACK, sent, expected, 0);
        }
        it.tries += 1;
        self.repeat(port)
    }

    /// Sends what was not acknowledged once more, or asks for the window.
    fn repeat(&mut self, port: u16) -> Vec<Segment> {
        self.counts[counter::RESENT] += 1;
        let it = &mut self.connections[usize::from(port)];
        let (at, expected) = (it.first + it.acknowledged - 1, it.expected);
        if it.state == state::OPENING {
            return self.send(port, SYN | ACK, at, expected, 0);
        }
        if it.is_shut {
            return self.send(port, ACK, at, expected, 0);
        }
        it.under_way = 0;
        self.go_on(port, u16::MAX, self.terms.segment, false)
    }

    /// Sends what the windows leave room for, at most `most` bytes; else an acknowledgement, if one is due.
    fn go_on(&mut self, port: u16, window: u16, most: u32, acknowledges: bool) -> Vec<Segment> {
        let segment = self.terms.segment;
        let it = &mut self.connections[usize::from(port)];
        let (whole, end) = (it.whole(self.terms.body), it.has_end());
        let mut from = it.acknowledged + it.under_way;
        let room = u32::from(window).min(MOST_SEGMENTS * segment).min(MOST_UNDER_WAY).saturating_sub(it.under_way);
        let room = room.min(most);
        if from < whole && from < it.head() {
            from = 0;
        }
        let mut bytes = whole.saturating_sub(from);
        let fits = bytes <= room;
        if !fits {
            bytes = match room {
                room if room >= segment => room - room % segment,
                room if it.under_way > 0 || room < LEAST_WINDOW => 0,
                room => room,
            };
        }
        let is_last = end && from + bytes == whole;
        if bytes > 0 || (fits && is_last) {
            it.under_way = from + bytes + u32::from(is_last) - it.acknowledged;
            it.tries = it.tries.max(1);
            let (first, expected) = (it.first, it.expected);
            let mut sent = Vec::new();
            loop {
                let some = bytes.min(segment);
                bytes -= some;
                let flags = ACK | if bytes > 0 { 0 } else { (u8::from(some > 0) * PSH) | (u8::from(is_last) * FIN) };
                sent.append(&mut self.send(port, flags, first + from, expected, some));
                from += some;
                if bytes == 0 {
                    return sent;
                }
            }
        }
        if it.under_way == 0 && whole > 0 {
            (it.is_shut, it.tries) = (true, 1);
        }
        let (sent, expected) = (it.sent(), it.expected);
        if acknowledges { self.send(port, ACK, sent, expected, 0) } else { Vec::new() }
    }

    fn accept(&mut self, segment: &Segment) -> Vec<Segment> {
        let port = segment.port;
        let it = self.connections[usize::from(port)];
        if it.state != state::FREE {
            if it.state == state::OPENING && it.expected == segment.sequence + 1 {
                return self.repeat(port);
            }
            self.counts[counter::REPEATED] += 1;
            return self.send(port, ACK, it.sent(), it.expected, 0);
        }
        self.counts[counter::TAKEN] += 1;
        // Each begins elsewhere.
        let (first, expected) = (self.counts[counter::TAKEN] as u32 * 10_000_000, segment.sequence + 1);
        self.connections[usize::from(port)] =
            Answering { state: state::OPENING, first, expected, tries: 1, ..Answering::default() };
        self.send(port, SYN | ACK, first - 1, expected, 0)
    }

    pub fn receive(&mut self, segment: &Segment) -> Vec<Segment> {
        let port = segment.port;
        if segment.flags & (SYN | ACK | RST) == SYN {
            return self.accept(segment);
        }
        let after = segment.sequence + segment.bytes + u32::from(segment.has(FIN));
        if self.connections[usize::from(port)].state == state::FREE {
            if segment.has(RST) {
                return Vec::new();
            }
            let is_end = segment.has(FIN);
            self.counts[if is_end { counter::REPEATED } else { counter::NOT_EXPECTED }] += 1;
            return self.send(port, if is_end { ACK } else { RST | ACK }, segment.acknowledged, after, 0);
        }
        let it = &mut self.connections[usize::from(port)];
        if segment.has(RST) {
            if segment.sequence == it.expected {
                self.free(port);
            }
            return Vec::new();
        }
        let mut arrived = 0;
        if it.state == state::OPENING {
            if segment.acknowledged != it.first {
                return Vec::new();
            }
            self.counts[counter::ACCEPTED] += 1;
            (it.state, it.tries) = (state::IDLE, 0);
        } else {
            let end = it.whole(self.terms.body) + u32::from(it.has_end());
            let offset = segment.acknowledged.wrapping_sub(it.first);
            if offset <= end && offset > it.acknowledged {
                arrived = offset - it.acknowledged;
                it.under_way = (it.acknowledged + it.under_way).saturating_sub(offset);
                (it.acknowledged, it.repeats, it.tries) = (offset, 0, u8::from(it.under_way > 0));
                if offset == end {
                    let had_end = it.has_end();
                    if had_end && it.is_ended {
                        self.free(port);
                        return Vec::new();
                    }
                    let state = if had_end { state::CLOSING } else { state::IDLE };
                    *it = Answering {
                        state,
                        first: it.first + end,
                        expected: it.expected,
                        tries: u8::from(had_end),
                        ..Answering::default()
                    };
                }
            } else if offset == it.acknowledged && it.under_way > 0 && segment.bytes == 0 && !segment.has(FIN) {
                it.repeats = (it.repeats + 1).min(REPEATS_OF_LOSS + 1);
            }
        }
        it.is_shut = false;
        let is_next = segment.sequence == it.expected;
        if !is_next && (segment.bytes > 0 || segment.has(FIN) || segment.sequence + 1 == it.expected) {
            self.counts[counter::REPEATED] += 1;
            return self.go_on(port, segment.window, 0, true);
        }
        if segment.bytes > 0 {
            if it.state != state::IDLE {
                let (sent, expected) = (it.sent(), it.expected);
                self.free(port);
                self.counts[counter::NOT_EXPECTED] += 1;
                return self.send(port, RST | ACK, sent, expected, 0);
            }
            self.counts[counter::REQUESTS] += 1;
            it.expected += segment.bytes;
            it.state = state::ASKED;
            it.is_last = segment.bytes == self.terms.last_request;
        }
        if segment.has(FIN) {
            it.expected += 1;
            if it.state == state::CLOSING {
                let (first, expected) = (it.first, it.expected);
                self.free(port);
                return self.send(port, ACK, first, expected, 0);
            }
            it.is_ended = true;
            if it.state == state::IDLE {
                it.state = LAST_ACK;
            }
        }
        let segment_bytes = self.terms.segment;
        if segment.bytes > 0 || segment.has(FIN) {
            return self.go_on(port, segment.window, MOST_COPIES * segment_bytes, true);
        }
        if it.repeats == REPEATS_OF_LOSS {
            it.repeats += 1;
            return self.repeat(port);
        }
        if arrived == 0 && it.under_way > 0 {
            return Vec::new();
        }
        self.go_on(port, segment.window, (arrived + segment_bytes).min(4 * segment_bytes), false)
    }
}
