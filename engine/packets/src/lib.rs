//! `nicbench-packets`: generator and analyser on DPDK's `ethdev`, every packet stamped and checked.

pub mod addresses;
pub mod analyser;
pub mod checksum;
pub mod clock;
pub mod error;
pub mod flows;
pub mod gaps;
pub mod health;
pub mod latency;
pub mod pacer;
pub mod port;
pub mod signature;
pub mod sim;
pub mod sys;
pub mod template;
