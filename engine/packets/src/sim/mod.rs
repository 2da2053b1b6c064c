//! Ports that exist only here: seeded faults, no DPDK, under either clock.
//!
//! A trial's results depend on its seed, number and load only, never on what ran before.

mod card_clock;
mod dut;
mod egress;
mod network;
mod port;

pub use network::{SimulatedPortOptions, open};
