//! Traffic with known fates, hostile frames among it, judged in bursts; and the same counts kept without any
//! cleverness.

use std::collections::HashMap;

use nicbench_packets::analyser::{Analyser, Detail, Expected};
use nicbench_packets::faults::Random;
use nicbench_packets::port::Frame;
use nicbench_packets::signature::{Owner, Signature, Signer};
use nicbench_packets::sys::pool::FramePool;
use nicbench_packets::template::Template;
use serde_json::json;

const RUN_KEY: u64 = 77;
const TRIAL: u32 = 1000;
const ARRIVALS: u64 = 400;

/// What each frame must be counted as.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    received: u64,
    duplicated: u64,
    reordered: u64,
    corrupted: u64,
    corrupted_copies: u64,
    late: u64,
    unattributed: u64,
    foreign: u64,
    stale: u64,
    latency_sum_ns: u128,
}

/// Every sequence of every flow, and whether it came whole.
#[derive(Debug, Default)]
struct Record {
    counts: Counts,
    seen: HashMap<(u32, u32), ()>,
    greatest: HashMap<u32, u32>,
    /// Whether the first frame had other addresses than were sent.
    is_rewritten: bool,
    after_drain: bool,
}

impl Record {
    fn whole(&mut self, flow: u32, sequence: u32, latency_ns: u64) {
        if self.seen.insert((flow, sequence), ()).is_some() {
            self.counts.duplicated += u64::from(!self.after_drain);
            return;
        }
        if self.after_drain {
            self.counts.late += 1;
            return;
        }
        self.counts.received += 1;
        self.counts.latency_sum_ns += u128::from(latency_ns);
        let greatest = self.greatest.entry(flow).or_insert(sequence);
        self.counts.reordered += u64::from(sequence < *greatest);
        *greatest = sequence.max(*greatest);
    }

    /// Whole, but for its addresses.
    fn readdressed(&mut self, flow: u32, sequence: u32, latency_ns: u64) {
        let is_copy = self.seen.contains_key(&(flow, sequence));
        if is_copy && !self.is_rewritten {
            self.counts.corrupted_copies += u64::from(!self.after_drain);
            return;
        }
        let is_first = self.counts.received == 0;
        self.whole(flow, sequence, latency_ns);
        self.is_rewritten |= is_first && self.counts.received == 1;
    }

    fn broken(&mut self, flow: u32, sequence: u32) {
        if self.after_drain {
            return;
        }
        match self.seen.insert((flow, sequence), ()) {
            Some(()) => self.counts.corrupted_copies += 1,
            None => self.counts.corrupted += 1,
        }
    }

    fn unattributed(&mut self) {
        self.counts.unattributed += u64::from(!self.after_drain);
    }

    fn stale(&mut self) {
        self.counts.stale += u64::from(!self.after_drain);
    }

    fn foreign(&mut self) {
        self.counts.foreign += u64::from(!self.after_drain);
    }
}

/// One case; returns how many frames it had.
pub fn compare(random: &mut Random) -> u64 {
    let template = template(random);
    let most = [1, 4, 300][random.below(3) as usize];
    let flows = 1 + random.below(most) as u32;
    let expected =
        Expected { template: template.clone(), sent: None, receive_port: 1, first_flow: 0, flows, copy_of: None };
    let groups = 1 + random.below(64) as u32;
    let detail = Detail { flow_groups: groups, flow_histograms: false, ..Detail::default() };
    let mut analyser =
        Analyser::with_detail(Signer::new(RUN_KEY, TRIAL), vec![expected], 2, detail).expect("an analyser");
    let (mut record, mut pool, mut now_ns, mut arrived) = (Record::default(), FramePool::default(), 1_000_000, 0);
    while arrived < ARRIVALS {
        if !record.after_drain && arrived > ARRIVALS * 9 / 10 {
            record.after_drain = true;
            analyser.end_drain();
        }
        now_ns += random.below(20_000_000);
        // Up to as many as a port hands out at once, and more than are judged together.
        let burst: Vec<Frame> = (0..1 + random.below(64))
            .map(|number| {
                let bytes = arrival(random, &template, flows, (arrived + number) as u32, now_ns, &mut record);
                let mut frame = pool.take(bytes.len());
                frame.bytes_mut().copy_from_slice(&bytes);
                frame
            })
            .collect();
        analyser.analyse_burst(1, &burst, now_ns);
        burst.iter().for_each(|frame| pool.give(frame));
        arrived += burst.len() as u64;
    }
    assert_eq!(counts(&analyser), record.counts);
    arrived
}

fn counts(analyser: &Analyser) -> Counts {
    let (tally, port) = (&analyser.streams()[0], analyser.ports()[1]);
    assert_eq!(tally.unattributed, port.corrupted_unattributed);
    Counts {
        received: tally.received,
        duplicated: tally.duplicated,
        reordered: tally.reordered,
        corrupted: tally.corrupted,
        corrupted_copies: tally.corrupted_copies,
        late: tally.late,
        unattributed: tally.unattributed,
        foreign: port.foreign,
        stale: port.stale,
        latency_sum_ns: analyser.outcome(0).latency.sum_ns,
    }
}

/// Makes a frame and enters in the record what it must count as.
fn arrival(
    random: &mut Random,
    template: &Template,
    flows: u32,
    number: u32,
    now_ns: u64,
    record: &mut Record,
) -> Vec<u8> {
    let flow = random.below(flows.into()) as u32;
    // Rising, with steps back that the smallest record of a flow still holds.
    let back = if random.below(4) == 0 { 60 } else { 2 };
    let sequence = (number / flows.min(4)).saturating_sub(random.below(back) as u32);
    let latency_ns = random.below(900_000);
    let make = |run_key, trial, flow, sequence| {
        let mut frame = template.constant().to_vec();
        let time_ns = now_ns - latency_ns;
        if let Some(place) = frame[template.signature_offset()..].first_chunk_mut() {
            Signer::new(run_key, trial).write(place, Signature { flow, sequence, time_ns });
        }
        frame
    };
    let mut frame = make(RUN_KEY, TRIAL, flow, sequence);
    let (offset, length) = (template.signature_offset(), frame.len());
    let bit = 1 << random.below(8);
    match random.below(31) {
        // Truncated: within the signature, within the payload, within the headers.
        0 => {
            frame.truncate(offset + random.below(16) as usize);
            record.unattributed();
        }
        1 if length > offset + 16 => {
            frame.truncate(offset + 16 + random.below((length - offset - 16) as u64) as usize);
            record.broken(flow, sequence);
        }
        2 => {
            frame.truncate(random.below(34) as usize);
            record.foreign();
        }
        // Wrong lengths: in the IP header, in the UDP header, of the frame.
        3 => {
            let place = if frame[12] == 0x08 { 17 } else { 19 };
            frame[place] ^= bit;
            record.broken(flow, sequence);
        }
        4 => {
            frame[offset - 3] ^= bit;
            record.broken(flow, sequence);
        }
        5 => {
            frame.resize(length + 1 + random.below(300) as usize, 0);
            record.broken(flow, sequence);
        }
        // Signatures with a wrong key, between our addresses and between others.
        6 => {
            frame = wrong_key(random, &make, flow, sequence, offset);
            record.unattributed();
        }
        7 => {
            frame = wrong_key(random, &make, flow, sequence, offset);
            frame[offset - 5] ^= bit; // the destination port
            record.foreign();
        }
        8 => {
            frame = make(RUN_KEY, TRIAL - 1 - random.below(900) as u32, flow, sequence);
            record.stale();
        }
        // Flows and sequences that never were.
        9 => {
            frame = make(RUN_KEY, TRIAL, flows + random.below(1 << 20) as u32, sequence);
            record.foreign();
        }
        10 => {
            // Half of the numbers are before the first: nothing near them was ever sent.
            frame = make(RUN_KEY, TRIAL, flow, (1 << 31) + 5_000 + random.below(1 << 30) as u32);
            record.foreign();
        }
        // Flipped bits: in the signature, in the payload, in the type, and where routers write.
        11 => {
            let place = offset + random.below(16) as usize;
            frame[place] ^= bit;
            if is_nobodys(&frame, offset) {
                record.unattributed();
            } else {
                frame[place] ^= bit;
                record.whole(flow, sequence, latency_ns);
            }
        }
        12 if length > offset + 16 => {
            frame[offset + 16 + random.below((length - offset - 16) as u64) as usize] ^= bit;
            record.broken(flow, sequence);
        }
        13 => {
            frame[12 + random.below(2) as usize] ^= bit;
            record.broken(flow, sequence);
        }
        14 => {
            frame[random.below(12) as usize] ^= bit;
            record.whole(flow, sequence, latency_ns);
        }
        15 => {
            let any: Vec<u8> = (0..random.below(1500)).map(|_| random.bits() as u8).collect();
            // Too short for a signature, or with one of nobody.
            if any.len() < offset + 16 || is_nobodys(&any, offset) {
                frame = any;
                record.foreign();
            } else {
                record.whole(flow, sequence, latency_ns);
            }
        }
        // Another destination port.
        16 => {
            frame[offset - 5] ^= bit;
            record.readdressed(flow, sequence, latency_ns);
        }
        _ => record.whole(flow, sequence, latency_ns),
    }
    frame
}

/// A signature of 32 bits looks, once in four billion times, like that of each of the trials so far; such frames are
/// not sent.
fn is_nobodys(frame: &[u8], offset: usize) -> bool {
    let payload = frame.get(offset..).and_then(|rest| rest.first_chunk());
    payload.is_some_and(|payload| Signer::new(RUN_KEY, TRIAL).read(payload) == Owner::Unknown)
}

fn wrong_key(
    random: &mut Random,
    make: &impl Fn(u64, u32, u32, u32) -> Vec<u8>,
    flow: u32,
    sequence: u32,
    offset: usize,
) -> Vec<u8> {
    loop {
        let frame = make(RUN_KEY ^ random.bits().max(1), TRIAL, flow, sequence);
        if is_nobodys(&frame, offset) {
            return frame;
        }
    }
}

fn template(random: &mut Random) -> Template {
    let ip: u8 = if random.below(2) == 0 { 4 } else { 6 };
    let (source, destination) = if ip == 4 { ("198.18.0.2", "198.19.0.2") } else { ("2001:2::1", "2001:2::2") };
    let least = if ip == 4 { 62 } else { 82 };
    let request = json!({
        "name": "s", "transmit_port": 0, "receive_port": 1, "frame_bytes": least + random.below(600), "rate_frames_per_s": 1,
        "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": ip,
        "source_address": source, "destination_address": destination,
    });
    Template::new(&serde_json::from_value(request).expect("a stream")).expect("a template")
}
