//! What the first worker does for all of them.

use std::thread;

use serde_json::json;

use super::*;
use crate::port::{Clock, Frame, Port, PortCounters, PortFacts};
use crate::sys;

const CPU: u32 = 0;

/// A port that takes no frame and receives none.
struct DeadPort(PortFacts);

impl DeadPort {
    fn new() -> Self {
        Self(PortFacts {
            name: "dead".into(),
            driver: "none".into(),
            mac: None,
            link_bits_per_s: None,
            link_up: None,
            minimum_frame_bytes: 64,
            maximum_frame_bytes: 1518,
            tag_bytes: 0,
            maximum_burst: crate::port::MAXIMUM_BURST,
            transmit_descriptors: 0,
            receive_descriptors: 0,
            send_buffer_bytes: None,
            transmit_budget_frames: None,
            numa_node: None,
            lossless: false,
            stamps: None,
        })
    }
}

impl Port for DeadPort {
    fn facts(&self) -> &PortFacts {
        &self.0
    }

    fn allocate(&mut self, _frames: &mut [Frame], _length: usize) -> usize {
        0
    }

    fn send(&mut self, _frames: &[Frame]) -> usize {
        0
    }

    fn receive(&mut self, _frames: &mut [Frame]) -> usize {
        0
    }

    fn free(&mut self, _frames: &[Frame]) {}

    fn flush(&mut self) {}

    fn counters(&mut self) -> PortCounters {
        PortCounters::default()
    }
}

struct NoOrders;

impl Orders for NoOrders {
    fn is_waiting(&self) -> bool {
        false
    }

    fn take(&mut self) -> Order {
        Order::Continue
    }
}

#[test]
fn the_cores_of_the_dut_are_watched_in_each_transmission() {
    let may_watch = thread::spawn(|| sys::thread::pin_to(CPU).is_ok() && sys::thread::run_first().is_ok());
    if !may_watch.join().unwrap() {
        eprintln!("not permitted to watch a CPU here: nothing to see");
        return;
    }
    let clock = TscClock::calibrated();
    let (core_watch, snapshot) = (CoreWatch::start(&[CPU], clock.hz()), Snapshot::default());
    let ports: Vec<WorkerPorts> = vec![vec![Box::new(DeadPort::new())]];
    let mut group = WorkerGroup::new(clock, ports, vec![Roles::all(1)], vec![CPU], core_watch, &snapshot).unwrap();
    for number in 1..=2 {
        let start = json!({"trial": number, "duration_s": 0.1, "streams": [{
            "name": "forward", "transmit_port": 0, "receive_port": 0, "frame_bytes": 64, "rate_frames_per_s": 1000.0,
            "source_mac": "02:00:00:00:00:00", "destination_mac": "02:00:00:00:00:01", "ip": 4,
            "source_address": "198.18.0.2", "destination_address": "198.19.0.2"}]});
        let mut trial = group.new_trial(&serde_json::from_value(start).unwrap(), 1).unwrap();
        group.transmit(&mut trial, 0, &snapshot, &mut NoOrders);
        let watched = trial.lead().health.cpus.first().unwrap();
        assert!(watched.speed_samples.is_some_and(|looks| looks > 0), "trial {number}: {watched:?}");
    }
}
