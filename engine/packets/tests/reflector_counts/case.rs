//! One case, drawn from a seed: traffic, faults, and how the forwarder works.

use nicbench_packets::faults::Random;
use nicbench_packets::reflector::Setup;
use nicbench_protocol::{Faults, ReflectMode, Start, WhenFull};
use serde_json::{Value, json};

use crate::rings::RUN_KEY;

const SMALLEST_IPV4: u64 = 64;
const SMALLEST_IPV6: u64 = 82;
/// Holds the headers of every kind.
const SMALLEST_LAYERED: u64 = 160;
const LARGEST: u64 = 1518;
const RECORDS: usize = 1 << 20;

/// One case: streams and the faults that they meet.
#[derive(Debug)]
pub struct Case {
    pub streams: Vec<Stream>,
    pub duration_s: f64,
    pub burst: u32,
    pub faults: Faults,
    pub mode: ReflectMode,
    pub forwarder_burst: usize,
    pub foreign_every: u64,
}

/// What a stream's frames are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// Ethernet, IP, UDP.
    Plain,
    Tagged,
    /// Two tags, and TCP.
    Tcp,
    /// VXLAN, with the plain headers in it.
    Carried,
}

/// Stream n goes from port n to the other.
#[derive(Debug)]
pub struct Stream {
    pub headers: Headers,
    pub ip: u8,
    pub frame_bytes: u64,
    pub flows: u64,
    pub rate_frames_per_s: f64,
}

impl Case {
    pub fn drawn(seed: u64, number: u64) -> Self {
        let mut random = Random::seeded(seed, 0, number);
        let streams: Vec<Stream> = (0..1 + random.below(2)).map(|_| Stream::drawn(&mut random)).collect();
        let most_flows = streams.iter().map(|stream| stream.flows).max().unwrap_or(1);
        let faults = drawn_faults(&mut random, most_flows, streams[0].rate_frames_per_s);
        Self {
            duration_s: 0.004 + 0.012 * random.share(),
            burst: 1 + random.below(64) as u32,
            faults,
            mode: if random.below(2) == 0 { ReflectMode::Forward } else { ReflectMode::MacSwap },
            forwarder_burst: 1 + random.below(64) as usize,
            foreign_every: if random.below(3) == 0 { 1 + random.below(100) } else { 0 },
            streams,
        }
    }

    pub fn setup(&self, trial: u32) -> Setup {
        Setup {
            same_port: false,
            mode: self.mode,
            burst: self.forwarder_burst,
            when_full: WhenFull::Wait,
            faults: self.faults.clone(),
            log: Some((RUN_KEY, RECORDS)),
            trial,
        }
    }

    pub fn start(&self, trial: u32) -> Start {
        let streams: Vec<Value> = self.streams.iter().enumerate().map(|(port, stream)| stream.request(port)).collect();
        let start = json!({"trial": trial, "duration_s": self.duration_s, "burst": self.burst, "streams": streams});
        serde_json::from_value(start).expect("a start request")
    }
}

impl Stream {
    fn drawn(random: &mut Random) -> Self {
        let ip = if random.below(2) == 0 { 4 } else { 6 };
        let headers = match random.below(6) {
            0 => Headers::Tagged,
            1 => Headers::Tcp,
            2 => Headers::Carried,
            _ => Headers::Plain,
        };
        let smallest = match (headers, ip) {
            (Headers::Plain, 4) => SMALLEST_IPV4,
            (Headers::Plain, _) => SMALLEST_IPV6,
            _ => SMALLEST_LAYERED,
        };
        let frame_bytes = match random.below(3) {
            0 => smallest,
            1 => [256, 512, 1024, 1280, 1518][random.below(5) as usize],
            _ => smallest + random.below(LARGEST - smallest + 1),
        };
        let flows = [1, 2, 7, 64, 256, 1000][random.below(6) as usize];
        Self { headers, ip, frame_bytes, flows, rate_frames_per_s: 10_000.0 + 90_000.0 * random.share() }
    }

    fn request(&self, port: usize) -> Value {
        let network = if self.ip == 4 { "198.18.0." } else { "2001:2::" };
        let (source, destination) = (format!("{network}{}", 1 + port), format!("{network}{}", 2 - port));
        let mut request = json!({
            "name": format!("from {port}"), "transmit_port": port, "receive_port": 1 - port,
            "frame_bytes": self.frame_bytes, "rate_frames_per_s": self.rate_frames_per_s, "flows": self.flows,
        });
        let rest = match self.headers {
            Headers::Plain => json!({
                "source_mac": MACS[0], "destination_mac": MACS[1], "ip": self.ip, "source_address": source,
                "destination_address": destination, "source_port_count": self.flows,
            }),
            headers => json!({"layers": layers(headers, self.ip, &source, &destination, self.flows)}),
        };
        if let (Some(request), Value::Object(rest)) = (request.as_object_mut(), rest) {
            request.extend(rest);
        }
        request
    }
}

const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

fn layers(headers: Headers, ip: u8, source: &str, destination: &str, flows: u64) -> Vec<Value> {
    let ethernet = json!({"layer": "ethernet", "source": MACS[0], "destination": MACS[1]});
    let vlan = json!({"layer": "vlan", "id": 100});
    let ip = json!({"layer": format!("ipv{ip}"), "source": source, "destination": destination});
    let ports = |layer: &str| json!({"layer": layer, "source": {"first": 1024, "count": flows}, "destination": 9});
    let vxlan = [json!({"layer": "udp", "source": 49152, "destination": 4789}), json!({"layer": "vxlan", "vni": 5000})];
    match headers {
        Headers::Plain | Headers::Tagged => vec![ethernet, vlan, ip, ports("udp")],
        Headers::Tcp => vec![ethernet, vlan.clone(), vlan, ip, ports("tcp")],
        Headers::Carried => {
            [vec![ethernet.clone(), ip.clone()], vxlan.into(), vec![ethernet, ip, ports("udp")]].concat()
        }
    }
}

/// About half of the faults at once, each with a probability up to a tenth.
fn drawn_faults(random: &mut Random, most_flows: u64, rate_frames_per_s: f64) -> Faults {
    let mut probability = || if random.below(2) == 0 { 0.0 } else { 0.1 * random.share() };
    let [loss, duplicate, reorder, corrupt_payload, corrupt_signature, corrupt_length] =
        std::array::from_fn(|_| probability());
    let one_in = |random: &mut Random, chances| random.below(chances) == 0;
    Faults {
        seed: random.bits(),
        delay_ns: if one_in(random, 2) { random.below(2_000_000) } else { 0 },
        jitter_ns: if one_in(random, 2) { random.below(500_000) } else { 0 },
        loss,
        duplicate,
        reorder,
        reorder_by: 1 + random.below(3 * most_flows.min(100)) as u32,
        corrupt_payload,
        corrupt_signature,
        corrupt_length,
        rate_frames_per_s: one_in(random, 4).then(|| rate_frames_per_s * (0.5 + random.share())),
        rate_burst_frames: 1 + random.below(64) as u32,
        rate_queue_frames: None,
        outage_ns: 0,
        held_frames: if one_in(random, 5) { 1 + random.below(100) as u32 } else { 4096 },
    }
}
