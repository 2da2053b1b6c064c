//! The reference forwarder: between two ports or back out of one, as fast as it can or with seeded faults.
//!
//! What it injects is what the tester must report, so it writes down the fate of each frame (`log`), and `expectation`
//! derives from that, by nothing the tester uses, what the tester's counts must be.

pub mod configuration;
mod control;
pub mod expectation;
mod faulty;
mod forwarder;
pub mod log;
mod plain;
pub mod session;
mod work;

pub use forwarder::{Reflector, Setup};
pub use work::Work;
