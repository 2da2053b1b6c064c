//! Frames for the receiver from bytes that anybody chose, and what must hold of its counts whatever they are.

use nicbench_packets::analyser::{Analyser, Detail, Expected};
use nicbench_packets::latency::Stamping;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::template::Template;
use serde_json::{Value, json};

const PORTS: usize = 2;
const LONGEST_FRAME: usize = 2048;
/// Bytes as they are cost as much input.
const LONGEST_RAW: usize = 160;
const RUN_KEY: u64 = 0x0BAD_CAFE;
const TRIAL: u32 = 7;

/// Streams of every kind of template, to both ports.
fn streams() -> Vec<Expected> {
    let macs = json!({"layer": "ethernet", "source": "02:00:00:00:00:01", "destination": "02:00:00:00:00:02"});
    let ipv4 = json!({"layer": "ipv4", "source": "198.18.0.2", "destination": "198.19.0.2"});
    let udp = json!({"layer": "udp", "source": 4000, "destination": 4789});
    let tcp = json!({"layer": "tcp", "source": 1, "destination": 2});
    let vlan = json!({"layer": "vlan", "id": 5});
    let vxlan = json!({"layer": "vxlan", "vni": 9});
    let plain = |ip: u8, source: &str, destination: &str| {
        json!({"source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": ip, "source_address": source,
               "destination_address": destination, "flows": 9, "source_port_count": 9, "frame_bytes": 128})
    };
    let layers = |layers: Vec<&Value>| json!({"layers": layers, "frame_bytes": 200, "flows": 3});
    let requests = [
        plain(4, "198.18.0.2", "198.19.0.2"),
        plain(6, "2001:2::1", "2001:2::2"),
        layers(vec![&macs, &vlan, &vlan, &ipv4, &tcp]),
        layers(vec![&macs, &ipv4, &udp, &vxlan, &macs, &ipv4, &udp]),
        json!({"layers": [macs, ipv4, udp], "sizes": [{"frame_bytes": 64, "weight": 7}, {"frame_bytes": 594, "weight": 4}]}),
    ];
    let mut first_flow = 0;
    let expected = requests.into_iter().enumerate().map(|(index, mut request)| {
        for (name, value) in [("name", json!("s")), ("transmit_port", json!(0)), ("rate_frames_per_s", json!(1))] {
            request[name] = value;
        }
        request["receive_port"] = json!(index % PORTS);
        let request = serde_json::from_value(request).expect("a stream");
        let template = Template::new(&request).expect("a template");
        let flows = template.flows(&request);
        first_flow += flows;
        Expected {
            template,
            sent: None,
            receive_port: index % PORTS,
            first_flow: first_flow - flows,
            flows,
            copy_of: None,
        }
    });
    expected.collect()
}

/// Takes numbers off the front of the input; 0 when it is used up.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn number(&mut self, bytes: usize) -> u64 {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

/// Judges the frames that `input` describes, and asserts what holds for all of them. Returns how many frames there
/// were.
pub fn judge(input: &[u8]) -> u64 {
    let streams = streams();
    let signer = Signer::new(RUN_KEY, TRIAL);
    let detail = Detail { flow_groups: 8, flow_histograms: false, ..Detail::default() };
    let mut analyser = Analyser::with_detail(signer, streams.clone(), PORTS, detail).expect("an analyser");
    let memory = analyser.flow_table_bytes();
    let mut bytes = Bytes(input);
    let (mut frames, mut now_ns) = (0u64, 0u64);
    while !bytes.0.is_empty() {
        let kind = bytes.number(1);
        if kind == 255 && bytes.number(1) < 32 {
            analyser.end_drain();
            break;
        }
        now_ns = now_ns.wrapping_add(bytes.number(4));
        let port = (kind >> 7) as usize;
        let frame = frame(&mut bytes, kind & 0x7F, &streams, now_ns);
        analyser.analyse(port, &frame, now_ns);
        frames += 1;
    }
    check(&analyser, frames);
    assert_eq!(analyser.flow_table_bytes(), memory);
    frames
}

const EARLIER: u64 = 3;

/// A frame: of ours and then changed in places, or bytes as they are.
fn frame(bytes: &mut Bytes, kind: u64, streams: &[Expected], now_ns: u64) -> Vec<u8> {
    if kind >= 64 {
        let length = (bytes.number(2) as usize % LONGEST_RAW).min(bytes.0.len());
        return (0..length).map(|_| bytes.number(1) as u8).collect();
    }
    let stream = &streams[kind as usize / 8 % streams.len()];
    let template = &stream.template;
    let mut frame = template.constant().to_vec();
    template.compose(bytes.number(1) as u32 % stream.flows, &mut frame);
    let signer = match kind % 8 {
        2 => Signer::new(RUN_KEY + 1, TRIAL),
        EARLIER => Signer::new(RUN_KEY, TRIAL - 1),
        _ => Signer::new(RUN_KEY, TRIAL),
    };
    let flow =
        if kind % 8 == 4 { bytes.number(3) as u32 } else { stream.first_flow + bytes.number(1) as u32 % stream.flows };
    let sequence = if kind % 8 == 5 { bytes.number(4) as u32 } else { bytes.number(1) as u32 };
    let time_ns = now_ns.wrapping_sub(bytes.number(3));
    let offset = template.signature_offset();
    if let Some(place) = frame[offset..].first_chunk_mut() {
        signer.write(place, Signature { flow, sequence, time_ns });
    }
    for _ in 0..if kind % 8 >= 6 { 1 + bytes.number(1) % 8 } else { 0 } {
        let position = bytes.number(2) as usize % frame.len();
        frame[position] ^= bytes.number(1) as u8;
    }
    if kind % 8 == 7 {
        frame.resize(bytes.number(2) as usize % LONGEST_FRAME, 0x5A);
    }
    frame
}

/// Each frame has exactly one place in the counts; the reading agrees with itself.
fn check(analyser: &Analyser, frames: u64) {
    let of_streams = analyser.streams().iter();
    let counted = of_streams
        .map(|tally| tally.received + tally.duplicated + tally.corrupted + tally.corrupted_copies + tally.late);
    let ports = || analyser.ports().iter();
    let of_ports = ports().map(|tally| tally.foreign + tally.misdirected + tally.corrupted_unattributed + tally.stale);
    assert_eq!(counted.sum::<u64>() + of_ports.sum::<u64>(), frames, "{analyser:?}");
    assert_eq!(ports().map(|tally| tally.arrived).sum::<u64>(), frames);
    let sent: Vec<u64> = analyser.streams().iter().map(|tally| tally.received + tally.corrupted + 3).collect();
    let stamping = Stamping { source: "software", received_by: "tsc", resolution_ns: 1.0, uncertainty_ns: 1.0 };
    for (index, (losses, sent)) in analyser.losses(&sent).iter().zip(&sent).enumerate() {
        let tally = &analyser.streams()[index];
        let rest = tally.received + tally.corrupted + losses.lost + losses.unattributed;
        assert!(rest == *sent || tally.late > 3, "{losses:?} {tally:?}");
        let reading = analyser.reading(index, *sent, stamping).expect("figures that agree");
        assert_eq!(reading.latency.map_or(0, |latency| latency.count), tally.received);
        let series = reading.intervals.map_or(0, |intervals| intervals.received.iter().sum());
        assert_eq!(series, tally.received);
    }
}
