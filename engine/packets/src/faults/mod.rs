//! What goes wrong on a frame's way, seeded: one model for simulated ports and for the reference forwarder.
//!
//! It knows no clock: its caller says what time it is, in picoseconds since an origin of the caller's.

mod corruption;
mod fate;
mod gate;
mod path;
mod place;
mod random;

pub use fate::impossible_odds;
pub use gate::Gate;
pub use path::{Buffers, Change, Counts, Departure, Dropped, FaultyPath};
pub use place::Place;
pub use random::Random;

/// Picoseconds, so that no rate is rounded visibly.
pub const PS_PER_NS: u64 = 1000;
