//! Frames beyond Ethernet, IP and UDP of one size: layers, mixes of sizes, frames of a file; and neighbours that ask
//! for us.

pub mod address_match;
pub mod allowance;
pub mod answering_port;
pub mod capture_file;
pub mod captured;
pub mod checksums;
pub mod encode;
pub mod header_stack;
pub mod layered;
pub mod neighbours;
pub mod recognition;
pub mod shape;
pub mod signature_search;
pub mod sizes;
pub mod tunnel_headers;
pub mod varied_field;

pub use captured::Captured;
pub use checksums::FrameChecksum;
pub use layered::Layered;
pub use shape::Shape;
pub use signature_search::{OtherSearches, SignatureSearch};
pub use varied_field::{Order, VariedField};

/// Which frame of a stream is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub shape: usize,
    /// The flow, from 0 within the stream.
    pub flow: u32,
    /// The lower 32 bits of the flow's sequence.
    pub sequence: u32,
}
