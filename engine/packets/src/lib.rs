//! `nicbench-packets`: generator and analyser on DPDK's `ethdev`, every packet stamped and checked.

pub mod addresses;
pub mod analyser;
pub mod checksum;
pub mod clock;
pub mod error;
pub mod flow_images;
pub mod flows;
pub mod frame_writer;
pub mod gaps;
pub mod health;
pub mod latency;
pub mod output;
pub mod pacer;
pub mod plan;
pub mod port;
pub mod sender;
pub mod session;
pub mod signature;
pub mod sim;
pub mod snapshot;
pub mod sys;
pub mod task_times;
pub mod template;
pub mod tester;
pub mod trial;
pub mod worker;
