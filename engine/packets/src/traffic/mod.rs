//! Frames beyond Ethernet, IP and UDP of one size: layers, mixes of sizes, frames of a file; and neighbours that ask for us.

pub mod addressed;
pub mod answering_port;
pub mod capture_file;
pub mod captured;
pub mod checks;
pub mod encode;
pub mod field;
pub mod headers;
pub mod layered;
pub mod neighbours;
pub mod search;
pub mod shape;
pub mod sizes;
pub mod stack;

pub use captured::Captured;
pub use layered::Layered;
pub use search::{Elsewhere, Search};
pub use shape::Shape;

/// Which frame of a stream comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub shape: usize,
    /// From 0 within the stream.
    pub flow: u32,
    /// Of the flow, its lower 32 bits.
    pub sequence: u32,
}
