//! `configure`: the ports and how the worker runs, once per process.

use serde::{Deserialize, Serialize};

use crate::stamps::{CardClock, Timestamps};

/// The fields of `configure`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Configure {
    /// 64-bit key as 16 hex digits; the signature's check uses it.
    pub run_key: String,
    /// What time is.
    pub clock: ClockSource,
    /// CPU of the worker's loop; `None` leaves it where the system puts it.
    #[serde(default)]
    pub worker_cpu: Option<u32>,
    /// Who sends and receives where; empty: one worker does both at every port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerRequest>,
    /// CPUs whose times are read around each transmission.
    #[serde(default)]
    pub watch_cpus: Vec<u32>,
    /// Memory in huge pages.
    #[serde(default)]
    pub huge_pages: bool,
    /// Memory for EAL.
    #[serde(default = "default_memory_mib")]
    pub memory_mib: u32,
    /// Further EAL arguments.
    #[serde(default)]
    pub eal: Vec<String>,
    /// By what received frames are stamped.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// An error that the clock `tsc` is given, to try whether it is found; `None` in every measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error: Option<ClockError>,
    /// In order: the index is the port's number.
    pub ports: Vec<PortRequest>,
}

/// By how much a clock is another than the machine's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockError {
    /// It is ahead by so much when it begins.
    pub offset_ns: i64,
    /// It gains so many millionths.
    pub ppm: f64,
}

/// One worker: a core with queues of its own at the ports that it serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRequest {
    /// Its CPU.
    pub cpu: u32,
    /// Numbers of the ports at which it transmits.
    #[serde(default)]
    pub transmit: Vec<usize>,
    /// Numbers of the ports at which it receives.
    #[serde(default)]
    pub receive: Vec<usize>,
}

fn default_memory_mib() -> u32 {
    512
}

/// What time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time-stamp counter.
    Tsc,
    /// Computed: only where every port is simulated.
    Virtual,
}

/// One port.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortRequest {
    /// Used by replies and errors.
    pub name: String,
    /// What it is made of.
    #[serde(flatten)]
    pub kind: PortKind,
    /// Wanted length of the transmit ring.
    #[serde(default = "default_transmit_descriptors")]
    pub transmit_descriptors: u32,
    /// Wanted length of the receive ring.
    #[serde(default = "default_receive_descriptors")]
    pub receive_descriptors: u32,
    /// Refused frames are the DUT's back-pressure.
    #[serde(default)]
    pub lossless: bool,
    /// Wanted send buffer of an AF_XDP socket.
    #[serde(default)]
    pub send_buffer_bytes: Option<u64>,
    /// Addresses for which the port answers ARP and neighbour discovery.
    #[serde(default)]
    pub addresses: Vec<AddressRange>,
}

/// Addresses one after another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressRange {
    /// IPv4 or IPv6.
    pub first: String,
    /// How many there are.
    #[serde(default = "one")]
    pub count: u32,
}

/// For what is left out of the text when it is one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

fn one() -> u32 {
    1
}

fn default_transmit_descriptors() -> u32 {
    2048
}

fn default_receive_descriptors() -> u32 {
    8192
}

/// What a port is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PortKind {
    /// A kernel interface by AF_XDP.
    AfXdp {
        /// The interface.
        device: String,
        /// The queue taken.
        #[serde(default)]
        queue: u32,
        /// An object file with a map `xsks_map`; `None` takes every frame.
        #[serde(default)]
        xdp_program: Option<String>,
    },
    /// A kernel interface by packet socket.
    AfPacket {
        /// The interface.
        device: String,
    },
    /// A kernel interface by libpcap, whose frames bear the kernel's time stamps.
    Pcap {
        /// The interface.
        device: String,
    },
    /// A kernel interface whose driver runs XDP programs: they make, receive and check the frames in the kernel, and the
    /// interface stays with its driver.
    Xdp {
        /// The interface.
        device: String,
    },
    /// A port of another engine, whose frames the two of them send and receive together: it has a number, and nothing
    /// goes or comes here.
    Remote,
    /// Takes every frame.
    Null,
    /// Looped to itself.
    Ring,
    /// A device on the PCI bus.
    Pci {
        /// As in `0000:03:00.0`.
        address: String,
        /// Arguments for the driver.
        #[serde(default)]
        devargs: String,
    },
    /// Any virtual device, in DPDK's words.
    Vdev {
        /// The text after `--vdev=`.
        vdev: String,
        /// Transmit queues of each worker; it spreads frames over them as a card does, by a hash of their flow.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        transmit_queues: u32,
        /// Receive queues of each worker.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        receive_queues: u32,
    },
    /// A port that exists only here, with faults of its own making.
    Simulated {
        /// Nominal speed: serialization takes its time.
        link_bits_per_s: f64,
        /// The port at which its frames arrive, but for those addressed to another port's `mac`.
        sends_to: usize,
        /// Its address: frames from any port to it arrive here, as behind a switch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mac: Option<String>,
        /// What happens to its frames on the way.
        #[serde(default)]
        dut: Box<SimulatedDut>,
        /// What the device's port towards it lets through, of all senders together.
        #[serde(default)]
        egress: SimulatedEgress,
        /// The clock that stamps what arrives here; `None`: the port has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        card_clock: Option<CardClock>,
    },
}

/// The device's side of a simulated port, which frames of all others leave by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulatedEgress {
    /// Frames that leave per second; `None` is unlimited.
    pub capacity_frames_per_s: Option<f64>,
    /// Frames waiting to leave; one more is dropped (drop tail).
    pub queue_frames: u32,
}

impl Default for SimulatedEgress {
    fn default() -> Self {
        Self { capacity_frames_per_s: None, queue_frames: 256 }
    }
}

/// What happens to frames sent on a simulated port before they arrive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SimulatedDut {
    /// Forwarding rate; `None` is unlimited.
    pub capacity_frames_per_s: Option<f64>,
    /// Frames waiting for service; one more is dropped (drop tail).
    pub queue_frames: u32,
    /// Time on the way, beside queueing.
    pub delay_ns: u64,
    /// Further delay, uniform from 0; frames stay in order.
    pub jitter_ns: u64,
    /// Probability that a frame is lost.
    pub loss: f64,
    /// Probability that a frame arrives twice.
    pub duplicate: f64,
    /// Probability that a frame is overtaken.
    pub reorder: f64,
    /// Probability that a bit of the payload is flipped.
    pub corrupt: f64,
    /// How many later frames overtake a reordered one.
    pub swap: u32,
    /// Frames that nobody of ours sent.
    pub foreign_frames_per_s: f64,
    /// The tester takes no more than this: its transmit ring is full.
    pub tester_ceiling_frames_per_s: Option<f64>,
    /// The worker is held up this often,
    pub pause_every_s: Option<f64>,
    /// and for so long.
    pub pause_ns: u64,
    /// Nothing arrives.
    pub dead: bool,
    /// Of all randomness, with the trial's number and load.
    pub seed: u64,
}

impl Default for SimulatedDut {
    fn default() -> Self {
        Self {
            capacity_frames_per_s: None,
            queue_frames: 256,
            delay_ns: 0,
            jitter_ns: 0,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            corrupt: 0.0,
            swap: 1,
            foreign_frames_per_s: 0.0,
            tester_ceiling_frames_per_s: None,
            pause_every_s: None,
            pause_ns: 0,
            dead: false,
            seed: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_port_survives_a_round_trip() {
        let kinds = [
            r#"{"name":"t0","kind":"af_xdp","device":"t0","queue":1,"xdp_program":"file.o"}"#,
            r#"{"name":"t0","kind":"af_packet","device":"t0","lossless":true}"#,
            r#"{"name":"t0","kind":"pcap","device":"t0"}"#,
            r#"{"name":"t0","kind":"null","transmit_descriptors":64}"#,
            r#"{"name":"t0","kind":"ring"}"#,
            r#"{"name":"t0","kind":"pci","address":"0000:03:00.0","devargs":"mprq_en=1"}"#,
            r#"{"name":"t0","kind":"vdev","vdev":"net_memif0,role=client,id=0","send_buffer_bytes":5}"#,
            r#"{"name":"t0","kind":"null","addresses":[{"first":"198.18.0.2"},{"first":"2001:2::1","count":9}]}"#,
            r#"{"name":"t0","kind":"simulated","link_bits_per_s":1e10,"sends_to":1,"dut":{"loss":0.5,"seed":3}}"#,
            r#"{"name":"t0","kind":"simulated","link_bits_per_s":1e10,"sends_to":1,"mac":"02:00:00:00:00:09",
                "egress":{"capacity_frames_per_s":1e6,"queue_frames":8}}"#,
            r#"{"name":"t0","kind":"simulated","link_bits_per_s":1e10,"sends_to":1,"card_clock":{"ppm":30.0}}"#,
        ];
        for text in kinds {
            let port: PortRequest = serde_json::from_str(text).unwrap();
            let again: PortRequest = serde_json::from_str(&serde_json::to_string(&port).unwrap()).unwrap();
            assert_eq!(port, again, "{text}");
        }
    }

    #[test]
    fn workers_survive_a_round_trip() {
        let text = r#"{"run_key":"00000000000000ff","clock":"tsc","ports":[],
            "workers":[{"cpu":2,"transmit":[0]},{"cpu":3,"receive":[0,1]}]}"#;
        let configure: Configure = serde_json::from_str(text).unwrap();
        assert_eq!((configure.workers[0].receive.len(), configure.workers[1].receive.len()), (0, 2));
        let again: Configure = serde_json::from_str(&serde_json::to_string(&configure).unwrap()).unwrap();
        assert_eq!(configure, again);
    }

    #[test]
    fn a_port_of_an_unknown_kind_is_refused() {
        assert!(serde_json::from_str::<PortRequest>(r#"{"name":"t0","kind":"pigeon"}"#).is_err());
    }

    #[test]
    fn what_is_left_out_has_the_documented_default() {
        let text = r#"{"run_key":"00000000000000ff","clock":"virtual","ports":[{"name":"a","kind":"null"}]}"#;
        let configure: Configure = serde_json::from_str(text).unwrap();
        assert_eq!((configure.worker_cpu, configure.memory_mib), (None, 512));
        assert_eq!((configure.workers.len(), configure.timestamps), (0, Timestamps::Tsc));
        let port = &configure.ports[0];
        assert_eq!((port.transmit_descriptors, port.receive_descriptors, port.lossless), (2048, 8192, false));
    }
}
