//! `nicbench-packets`: generator and analyser on DPDK's `ethdev`, every packet stamped and checked.

pub mod addresses;
pub mod analyser;
pub mod capture;
pub mod checksum;
pub mod clock;
pub mod core_watch;
pub mod details;
pub mod error;
pub mod faults;
pub mod flow_images;
pub mod flows;
pub mod frame_writer;
pub mod gaps;
pub mod health;
pub mod latency;
pub mod look_cost;
pub mod measure;
pub mod orders;
pub mod output;
pub mod pacer;
pub mod plan;
pub mod port;
pub mod trial_part;
#[cfg(feature = "dpdk")]
pub mod worker_group;

pub mod reflector;
pub mod sender;
pub mod session;
pub mod sharing;
pub mod signature;
pub mod sim;
pub mod snapshot;
pub mod stall_detector;
pub mod stamps;
pub mod sys;
pub mod task_times;
pub mod template;
pub mod tester;
pub mod traffic;
pub mod transmit_gaps;
pub mod trial;
pub mod wire;

pub mod worker;
