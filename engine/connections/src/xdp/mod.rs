//! Connections that are made and answered in the driver's hook, without the kernel's sockets.
//!
//! `bpf/connections.bpf.c` has both ends of TCP. The process decides what begins when, looks after what takes too long,
//! and reads what was counted.

pub mod client;
mod hook;
#[cfg(test)]
mod lossy;
#[cfg(test)]
mod model;
#[cfg(test)]
mod races;
mod records;
mod rings;
mod sender;
pub mod server;
mod wheel;

pub use hook::Link;

use rustix::time::{ClockId, clock_gettime};

/// The kernel's monotonic clock, which the programs read, too.
fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A moment as records have it.
fn ticks(ns: u64) -> u32 {
    (ns >> records::TICK_BITS) as u32
}
