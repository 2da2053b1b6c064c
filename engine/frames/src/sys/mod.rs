//! Everything unsafe: the calls of the kernel that the standard library does not have, and memory that they share.
#![allow(unsafe_code)]

pub mod buffer;
pub mod clock;
pub mod file;
pub mod process;
pub mod signal;
pub mod uring;
pub mod wide;
