//! The messages of `protocol/README.md` as types, for every engine binary.
#![warn(missing_docs)]

mod error;

pub use error::{ErrorKind, ErrorReport};
