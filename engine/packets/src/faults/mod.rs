//! What goes wrong on a frame's way, seeded: one model for simulated ports and for the reference forwarder.
//!
//! It knows no clock: its caller says what time it is, in picoseconds since an origin of the caller's.

mod corruption;
mod fate;
mod path;
mod random;
mod rate_limit;
mod signature_place;

pub use fate::impossible_odds;
pub use path::{Buffers, Change, Counts, Departure, Dropped, FaultyPath};
pub use random::Random;
pub use rate_limit::RateLimit;
pub use signature_place::SignaturePlace;

/// Picoseconds, so that no rate is rounded visibly.
pub const PS_PER_NS: u64 = 1000;
