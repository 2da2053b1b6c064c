//! What the BPF programs and this process share.

pub mod generating;
pub mod receiving;

pub use nicbench_bpf::*;
