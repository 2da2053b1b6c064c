//! Divides the queues of ports among workers.

use super::options::{PortKind, PortOptions};
use crate::error::{EngineError, ErrorKind};

/// The most queues of a worker at a port: as many as the shim's pools.
pub const MOST_QUEUES: u32 = 64;

/// The queues of one worker at one port, counted in workers: with several queues for each, the first begins at
/// a multiple of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortPart {
    /// Number of the transmit queue, from 0.
    pub transmit: Option<u32>,
    /// Number of the receive queue, from 0.
    pub receive: Option<u32>,
}

/// Which worker has which queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueAssignment {
    /// The CPUs of the workers beside the first.
    pub other_cpus: Vec<u32>,
    /// The queues of each worker, the first included, at each port.
    pub parts: Vec<Vec<PortPart>>,
}

/// The numbers of queues of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queues {
    pub transmit: u32,
    pub receive: u32,
    /// No frame is sent that was received at another port.
    pub own_buffers_only: bool,
}

impl QueueAssignment {
    /// One worker alone, with one queue each way at every port.
    pub fn alone(ports: usize) -> Self {
        let both = PortPart { transmit: Some(0), receive: Some(0) };
        Self { other_cpus: Vec::new(), parts: vec![vec![both; ports]] }
    }

    /// Queues of port `index`. Every driver has at least one each way.
    pub(super) fn queues(&self, index: usize, options: &PortOptions) -> Queues {
        let count = |part: fn(&PortPart) -> Option<u32>| {
            self.parts.iter().filter_map(|worker| part(&worker[index])).map(|queue| queue + 1).max().unwrap_or(1)
        };
        let (mut transmit, mut receive) = (count(|part| part.transmit), count(|part| part.receive));
        if needs_pairs(&options.kind) {
            transmit = transmit.max(receive);
            receive = transmit;
        }
        let each = options.kind.queues_of_worker();
        (transmit, receive) = (transmit * each.transmit, receive * each.receive);
        Queues { transmit, receive, own_buffers_only: true }
    }

    /// A receive queue that nobody empties would lose what the device steers there.
    pub(super) fn check(&self, index: usize, options: &PortOptions) -> Result<(), EngineError> {
        let queues = self.queues(index, options);
        if matches!(options.kind, PortKind::Pcap { .. }) && queues.transmit.max(queues.receive) > 1 {
            let message =
                format!("port {}: several workers share it, and net_pcap has one queue each way", options.name);
            let next = "let one worker transmit and one receive there";
            return Err(EngineError::new(ErrorKind::BadRequest, message, next));
        }
        let receivers = self.parts.iter().filter(|worker| worker[index].receive.is_some()).count() as u32;
        if queues.receive > receivers.max(1) * options.kind.queues_of_worker().receive {
            let message = format!(
                "port {}: {} workers transmit and {receivers} receive, and its driver has queues in pairs only",
                options.name, queues.transmit
            );
            let next = "let as many workers receive as transmit there";
            return Err(EngineError::new(ErrorKind::BadRequest, message, next));
        }
        Ok(())
    }
}

/// Drivers whose transmit queue n shares its socket with receive queue n.
fn needs_pairs(kind: &PortKind) -> bool {
    kind.is_af_xdp() || matches!(kind, PortKind::AfPacket { .. })
}

#[cfg(test)]
mod tests {
    use nicbench_protocol::Timestamps;

    use super::super::options::QueuesOfWorker;
    use super::*;

    #[test]
    fn each_worker_has_as_many_queues_as_the_port_says() {
        let queues = QueuesOfWorker { transmit: 4, receive: 2 };
        let memif = port(PortKind::Vdev { vdev: "net_memif0".into(), queues });
        let two = QueueAssignment { other_cpus: vec![1], parts: vec![part(Some(0), Some(0)), part(Some(1), None)] };
        let of_port = two.queues(0, &memif);
        assert_eq!((of_port.transmit, of_port.receive), (8, 2));
        assert!(two.check(0, &memif).is_ok());
    }

    fn port(kind: PortKind) -> PortOptions {
        PortOptions {
            name: "p".into(),
            kind,
            transmit_descriptors: 512,
            receive_descriptors: 512,
            lossless: false,
            send_buffer_bytes: None,
            timestamps: Timestamps::Tsc,
        }
    }

    fn part(transmit: Option<u32>, receive: Option<u32>) -> Vec<PortPart> {
        vec![PortPart { transmit, receive }]
    }

    #[test]
    fn a_port_has_as_many_queues_as_workers_use() {
        let assignment = QueueAssignment {
            other_cpus: vec![1, 2],
            parts: vec![part(Some(0), None), part(Some(1), None), part(None, Some(0))],
        };
        let queues = assignment.queues(0, &port(PortKind::Ring));
        assert_eq!((queues.transmit, queues.receive), (2, 1));
        assert!(assignment.check(0, &port(PortKind::Ring)).is_ok());
    }

    #[test]
    fn queues_in_pairs_need_as_many_receivers_as_transmitters() {
        let packet = port(PortKind::AfPacket { device: "t0".into() });
        let uneven = QueueAssignment { other_cpus: vec![1], parts: vec![part(Some(0), Some(0)), part(Some(1), None)] };
        assert!(uneven.check(0, &packet).unwrap_err().message.contains("2 workers transmit and 1 receive"));
        let pcap = port(PortKind::Pcap { device: "t0".into() });
        assert!(uneven.check(0, &pcap).unwrap_err().message.contains("net_pcap has one queue each way"));
        let apart = QueueAssignment { other_cpus: vec![1], parts: vec![part(Some(0), None), part(None, Some(0))] };
        assert!(apart.check(0, &packet).is_ok() && apart.check(0, &pcap).is_ok());
    }
}
