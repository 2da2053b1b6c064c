//! Frames with every fault that a path may have, and frames that nobody of ours made.

use nicbench_packets::analyser::Expected;
use nicbench_packets::faults::Random;
use nicbench_packets::frame_writer::FrameWriter;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::template::Template;
use serde_json::{Value, json};

use crate::{PORT, RUN_KEY, TRIAL};

/// What may pass through a page.
const LONGEST_FRAME: usize = 3000;
/// The kernel tests no shorter ones.
const SHORTEST_FRAME: usize = 14;

/// The streams of a case, and how far each flow was sent.
pub struct Case {
    pub expected: Vec<Expected>,
    pub greatest_gap_ns: u64,
    writers: Vec<FrameWriter>,
    next: Vec<u64>,
    /// Frames that were sent and wait to be overtaken: sequences by flow.
    held: Vec<(usize, u32, u64)>,
    base: u64,
}

impl Case {
    pub fn new(random: &mut Random) -> Self {
        let streams = 1 + random.below(4);
        let mut first_flow = 0;
        let expected: Vec<Expected> = (0..streams)
            .map(|number| {
                let flows = [1, 1, 3, 17, 300, 4096][random.below(6) as usize];
                // One stream in five arrives elsewhere.
                let receive_port = if number > 0 && random.below(5) == 0 { 0 } else { PORT };
                let template = template(random, number, flows);
                first_flow += flows;
                Expected { template, sent: None, receive_port, first_flow: first_flow - flows, flows, copy_of: None }
            })
            .collect();
        let writers = expected.iter().zip(1..).map(|(stream, tag)| {
            let signer = Signer::new(RUN_KEY, TRIAL);
            FrameWriter::new(stream.template.clone(), signer, stream.first_flow, stream.flows, tag)
        });
        Self {
            writers: writers.collect(),
            next: vec![0; first_flow as usize],
            held: Vec::new(),
            greatest_gap_ns: [20_000, 2_000_000, 30_000_000][random.below(3) as usize],
            base: [0, 0, 0, 0x7FFF_FFF0][random.below(4) as usize],
            expected,
        }
    }

    pub fn flows(&self) -> usize {
        self.next.len()
    }

    /// The next frame that arrives.
    pub fn arrival(&mut self, random: &mut Random, now_ns: u64) -> Vec<u8> {
        let index = random.below(self.expected.len() as u64) as usize;
        let stream = &self.expected[index];
        // A few flows of many, so that they come again.
        let flow = random.below(u64::from(stream.flows.min(5))) as u32 * (stream.flows / 5).max(1);
        let sequence = self.sequence(random, index, flow);
        let time_ns = match random.below(60) {
            0 => now_ns.wrapping_add(random.below(10_000)),
            1 => now_ns.wrapping_sub(random.below(1 << 38)),
            _ => now_ns.wrapping_sub(random.below(3_000_000)),
        };
        let mut frame = self.make(index, flow, sequence, time_ns, Signer::new(RUN_KEY, TRIAL));
        match random.below(40) {
            0 => self.make(index, flow, sequence, time_ns, Signer::new(RUN_KEY, TRIAL - 1 - random.below(900) as u32)),
            1 => self.make(index, flow, sequence, time_ns, Signer::new(RUN_KEY + 1, TRIAL)),
            2 => {
                let length = random.below(LONGEST_FRAME as u64) as usize;
                (0..length.max(SHORTEST_FRAME)).map(|_| random.bits() as u8).collect()
            }
            3 => {
                frame.resize((random.below(frame.len() as u64 + 100) as usize).max(SHORTEST_FRAME), 0);
                frame
            }
            4..=6 => {
                // A tag pushed.
                let tags: &[u8] =
                    if random.below(2) == 0 { &[0x81, 0, 0, 5] } else { &[0x88, 0xA8, 0, 5, 0x81, 0, 0, 9] };
                frame.splice(12..12, tags.iter().copied());
                frame
            }
            7 if frame[12..14] == [0x81, 0] => {
                frame.drain(12..16);
                frame
            }
            8..=11 => {
                // Damage among the headers, mostly.
                let front = if random.below(3) == 0 { frame.len() } else { frame.len().min(110) };
                for _ in 0..1 + random.below(3) {
                    frame[random.below(front as u64) as usize] ^= 1 << random.below(8);
                }
                frame
            }
            12 => {
                let offset = self.expected[index].template.signature_offset();
                frame[offset + random.below(16) as usize] ^= 1 << random.below(8);
                frame
            }
            13 => {
                // Options of IPv4 pushed in.
                if frame[12..14] == [8, 0] {
                    frame[14] = 0x46;
                    frame.splice(34..34, [1, 1, 1, 1]);
                    if random.below(2) == 0 {
                        frame[50] ^= 1;
                    }
                }
                frame
            }
            14 => self.make(index, flow, sequence.wrapping_add(random.bits()), time_ns, Signer::new(RUN_KEY, TRIAL)),
            15 => {
                let mut signature = Signature { flow: random.below(1 << 24) as u32, sequence: 3, time_ns };
                signature.time_ns = now_ns;
                let offset = self.expected[index].template.signature_offset();
                if let Some(place) = frame[offset..].first_chunk_mut() {
                    Signer::new(RUN_KEY, TRIAL).write(place, signature);
                }
                frame
            }
            16 => {
                // A copy with addresses and ports that nobody sent, mostly.
                let again = sequence.saturating_sub(random.below(3));
                frame = self.make(index, flow, again, time_ns, Signer::new(RUN_KEY, TRIAL));
                for byte in &mut frame[22..38] {
                    *byte ^= random.bits() as u8;
                }
                frame
            }
            _ => frame,
        }
    }

    /// In order as a rule; else after a gap, again, or overtaken by few or many.
    fn sequence(&mut self, random: &mut Random, index: usize, flow: u32) -> u64 {
        let next = &mut self.next[(self.expected[index].first_flow + flow) as usize];
        let mut sequence = *next;
        match random.below(12) {
            0 => sequence += random.below(5),
            1 => sequence += random.below(400),
            2 if random.below(20) == 0 => sequence += random.below(400_000),
            3 => {
                self.held.push((index, flow, sequence));
                sequence += 1;
            }
            4..=5 if !self.held.is_empty() => {
                let place = random.below(self.held.len() as u64) as usize;
                let of_flow = self.held.iter().position(|(of, number, _)| (*of, *number) == (index, flow));
                return self.base + self.held.swap_remove(of_flow.unwrap_or(place)).2;
            }
            6 => return self.base + sequence.saturating_sub(1 + random.below(6)),
            7 => return self.base + sequence.saturating_sub(1 + random.below(500)),
            _ => {}
        }
        *next = sequence + 1;
        self.base + sequence
    }

    fn make(&self, index: usize, flow: u32, sequence: u64, time_ns: u64, signer: Signer) -> Vec<u8> {
        let stream = &self.expected[index];
        let (template, mut frame) = (&stream.template, stream.template.constant().to_vec());
        let signature = Signature { flow: stream.first_flow + flow, sequence: sequence as u32, time_ns };
        let offset = template.signature_offset();
        if !template.is_varied() {
            self.writers[index].patch(&mut frame, flow, signature);
            if let Some(place) = frame[offset..].first_chunk_mut() {
                signer.write(place, signature);
            }
            return frame;
        }
        let choice = template.choose(flow, sequence, stream.flows);
        let Some(shape) = template.shape(choice) else { return frame };
        frame.truncate(shape.length);
        template.write_varied(choice, &mut frame);
        if let Some(place) = frame[offset..].first_chunk_mut() {
            signer.write(place, signature);
        }
        shape.write_checksums(&mut frame);
        frame
    }
}

fn template(random: &mut Random, number: u64, flows: u32) -> Template {
    let kind = random.below(10);
    let mut request = match kind {
        0..=3 => plain(random, 4, number, flows),
        4 | 5 => plain(random, 6, number, flows),
        _ => layered(random, kind, number, flows),
    };
    for (name, value) in [("name", json!("s")), ("transmit_port", json!(0)), ("receive_port", json!(PORT))] {
        request[name] = value;
    }
    request["rate_frames_per_s"] = json!(1);
    request["flows"] = json!(flows);
    let request = serde_json::from_value(request).expect("a stream");
    Template::new(&request).expect("a template")
}

fn plain(random: &mut Random, ip: u8, number: u64, flows: u32) -> Value {
    let addresses = match ip {
        4 => (format!("198.18.{number}.2"), format!("198.19.{number}.2")),
        _ => (format!("2001:2:{number}::fffe"), format!("2001:2:{number}:1::2")),
    };
    let least = if ip == 4 { 62 } else { 82 };
    let long = if random.below(8) == 0 { LONGEST_FRAME as u64 } else { 300 };
    json!({"source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": ip,
           "source_address": addresses.0, "destination_address": addresses.1, "source_port_count": flows.min(50_000),
           "source_address_count": 1 + random.below(9), "frame_bytes": least + random.below(long)})
}

fn layered(random: &mut Random, kind: u64, number: u64, flows: u32) -> Value {
    let macs = json!({"layer": "ethernet", "source": "02:00:00:00:00:01", "destination": "02:00:00:00:00:02"});
    let seed = if random.below(2) == 0 { json!(null) } else { json!(7) };
    let varied = |first: Value| json!({"first": first, "count": flows, "step": 1, "seed": seed});
    let ipv4 =
        json!({"layer": "ipv4", "source": varied(json!(format!("10.{number}.0.2"))), "destination": "198.19.0.2"});
    let ipv6 = json!({"layer": "ipv6", "source": varied(json!("2001:2::fff0")), "destination": "2001:2::2"});
    let udp = json!({"layer": "udp", "source": 4000 + number, "destination": 4789, "checksum": random.below(2) == 0});
    let tcp = json!({"layer": "tcp", "source": varied(json!(1)), "destination": 2});
    let vlan = json!({"layer": "vlan", "id": 5 + number});
    let vxlan = json!({"layer": "vxlan", "vni": 9 + number});
    let layers = match (kind, random.below(3)) {
        (6, 0) => json!([macs, vlan, ipv4, tcp]),
        (6, _) => json!([macs, vlan, vlan, ipv4, udp]),
        (7, 0) => json!([macs, ipv6, udp]),
        (7, _) => json!([macs, vlan, ipv6, tcp]),
        (8, 0) => json!([macs, ipv4, udp, vxlan, macs, ipv4, tcp]),
        (8, 1) => json!([macs, ipv6, udp, vxlan, macs, vlan, ipv6, udp]),
        (8, _) if number % 2 == 0 => json!([macs, ipv4, udp, vxlan, macs, ipv4, udp]),
        (8, _) => match random.below(4) {
            0 => json!([macs, ipv4, {"layer": "gre", "key": varied(json!(7))}, ipv4, udp]),
            1 => json!([macs, {"layer": "mpls", "label": 17}, ipv4, tcp]),
            2 => json!([macs, {"layer": "pppoe", "session": varied(json!(1))}, ipv6, udp]),
            _ => json!([macs, ipv4, udp, {"layer": "gtp", "teid": 9}, ipv4, udp]),
        },
        (_, 0) => json!([macs, ipv4, {"layer": "raw", "hex": "0badcafe99"}]),
        (_, 1) => {
            let sizes = json!([{"frame_bytes": 90, "weight": 7}, {"frame_bytes": 594, "weight": 4}]);
            return json!({"layers": [macs, ipv4, udp], "sizes": sizes});
        }
        _ => json!([macs, {"layer": "raw", "hex": "0badcafe"}]),
    };
    json!({"layers": layers, "frame_bytes": 200 + random.below(100)})
}
