//! All `unsafe` and FFI of the engine.
#![allow(unsafe_code)]

#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod frame;
#[cfg(feature = "dpdk")]
pub mod xsk;
