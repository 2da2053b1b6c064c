//! Everything unsafe: the calls of the kernel that the standard library does not have.
#![allow(unsafe_code)]

pub mod bpf;
pub mod clock;
pub mod directory;
pub mod namespace;
pub mod netlink;
pub mod poll;
pub mod scheduling;
pub mod signal;
pub mod usage;
pub mod xtables;
