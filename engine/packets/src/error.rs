//! The one error type of the engine: what the protocol's `error` holds.

use std::{fmt, io};

pub use nicbench_protocol::ErrorKind;
use nicbench_protocol::ErrorReport;
use pcap_file::PcapError;

/// What failed (`kind`, `message`: what and where) and what to do about it (`next`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    pub kind: ErrorKind,
    pub message: String,
    pub next: String,
}

impl EngineError {
    pub fn new(kind: ErrorKind, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: next.into() }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.next)
    }
}

impl std::error::Error for EngineError {}

impl From<EngineError> for ErrorReport {
    fn from(error: EngineError) -> Self {
        Self::new(error.kind, error.message, error.next)
    }
}

/// What went wrong with a file of frames: `PcapError` does not name the system's error, such as a full disk.
pub fn io_error_of_pcap(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(cause) => cause,
        other => io::Error::other(other),
    }
}
