//! All `unsafe` and FFI of the engine.
#![allow(unsafe_code)]

#[cfg(feature = "xdp")]
pub mod bpf;
pub mod core_speed;
#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod frame;
#[cfg(feature = "xdp")]
pub mod hardware_clock;
#[cfg(any(feature = "dpdk", feature = "xdp"))]
pub mod kernel_link;
#[cfg(feature = "xdp")]
pub mod link_socket;
pub mod pool;
pub mod prefetch;
pub mod signal;
pub mod tap_device;
pub mod thread;
pub mod tsc;
#[cfg(feature = "dpdk")]
pub mod xsk;
