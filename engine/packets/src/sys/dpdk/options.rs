//! What a caller asks of DPDK: plain values, checked by nobody but `args` and `port`.

use nicbench_protocol::Timestamps;

/// How the environment abstraction layer (EAL) is started: once per process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EalOptions {
    /// CPU of the thread that calls `start` and later drives the ports; `None` leaves the thread where it is.
    pub worker_cpu: Option<u32>,
    /// Memory in huge pages; otherwise ordinary pages (`--no-huge`).
    pub huge_pages: bool,
    /// Memory for EAL in MiB; at least what the ports' buffers need, see `buffers::memory_mib`.
    pub memory_mib: u32,
    /// Further EAL arguments, appended last as given.
    pub further: Vec<String>,
}

/// What a port is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortKind {
    /// A kernel interface by AF_XDP: nothing is unbound.
    AfXdp {
        /// The interface's name.
        device: String,
        /// The first (and only) queue taken.
        queue: u32,
        /// An object file with a map `xsks_map`; `None` redirects every frame of the queue to the socket.
        xdp_program: Option<String>,
    },
    /// A kernel interface by packet socket, where BPF is not allowed.
    AfPacket {
        /// The interface's name.
        device: String,
    },
    /// A kernel interface by libpcap: slow, but each frame bears the kernel's time stamp.
    Pcap {
        /// The interface's name.
        device: String,
    },
    /// Takes every frame, receives as many as asked for.
    Null,
    /// A ring in memory, looped to itself.
    Ring,
    /// A device on the PCI bus, by a driver of DPDK.
    Pci {
        /// As in `0000:03:00.0`.
        address: String,
        /// Arguments for the driver, as in `mprq_en=1`; empty for none.
        devargs: String,
    },
    /// Any virtual device, in DPDK's own words: `net_memif0,role=client,id=0`.
    Vdev {
        /// The text after `--vdev=`.
        vdev: String,
        /// Of each worker.
        queues: QueuesOfWorker,
    },
}

/// How many queues each worker has at a port, each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuesOfWorker {
    /// Frames are spread over these by a hash of their flow.
    pub transmit: u32,
    /// Emptied in turn.
    pub receive: u32,
}

impl QueuesOfWorker {
    /// One each way.
    pub const ONE: Self = Self { transmit: 1, receive: 1 };
}

impl PortKind {
    /// The queues of each worker.
    pub(super) fn queues_of_worker(&self) -> QueuesOfWorker {
        match self {
            Self::Vdev { queues, .. } => *queues,
            _ => QueuesOfWorker::ONE,
        }
    }

    /// True where a frame is received in the buffer that it was sent in.
    pub(super) fn hands_over(&self) -> bool {
        match self {
            Self::Ring => true,
            Self::Vdev { vdev, .. } => vdev.starts_with("net_ring"),
            _ => false,
        }
    }

    /// True where DPDK opens an AF_XDP socket, also when asked for in its own words.
    pub(super) fn is_af_xdp(&self) -> bool {
        match self {
            Self::AfXdp { .. } => true,
            Self::Vdev { vdev, .. } => vdev.starts_with("net_af_xdp"),
            _ => false,
        }
    }
}

/// One port, as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortOptions {
    /// The name that replies and errors use.
    pub name: String,
    /// What it is made of.
    pub kind: PortKind,
    /// Wanted length of the transmit ring; the driver's limits bound it.
    pub transmit_descriptors: u32,
    /// Wanted length of the receive ring; the driver's limits bound it.
    pub receive_descriptors: u32,
    /// Refused frames are the DUT's back-pressure, not the tester's shortfall.
    pub lossless: bool,
    /// Wanted send buffer of an AF_XDP socket; `None` keeps the kernel's default.
    pub send_buffer_bytes: Option<u64>,
    /// By what received frames are stamped; not by the TSC: the port does, or is refused.
    pub timestamps: Timestamps,
}
