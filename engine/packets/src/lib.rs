//! `nicbench-packets`: generator and analyser on DPDK's `ethdev`, every packet stamped and checked.

pub mod error;
pub mod port;
pub mod sys;
