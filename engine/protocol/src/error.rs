//! Why a request was refused: a kind for programs, a message and a next step for people.

use serde::{Deserialize, Serialize};

/// The kinds of error of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The line is not JSON, a field is missing, of the wrong type or out of range.
    BadRequest,
    /// A command this engine does not know.
    UnknownCommand,
    /// The major numbers of the two protocols differ.
    Version,
    /// The command is known but not possible now.
    BadState,
    /// DPDK's environment failed; the process must be replaced.
    Eal,
    /// A port could not be opened or used.
    Port,
    /// A directory or file could not be used.
    Io,
    /// There is no room for what is to be written, or for the buffers.
    Space,
    /// A frame size the port or the signature cannot hold.
    FrameSize,
    /// The engine was told to end before it could answer.
    Interrupted,
    /// Two ways of counting the same do not agree: a fault of the engine itself.
    SelfCheck,
}

/// The `error` of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// For programs.
    pub kind: ErrorKind,
    /// What failed, and where.
    pub message: String,
    /// What to do about it.
    pub next: String,
}

impl ErrorReport {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { kind, message: message.into(), next: next.into() }
    }
}
