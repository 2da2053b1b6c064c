//! `nicbench-frames`: media frames, written and read as recorders and players do it, each one timed.
//!
//! One library does the work (`job` says what, `run` does it, `worker` is the loop); `session` (the protocol) and `cli`
//! (people) ask.

pub mod cli;
pub mod content;
pub mod control;
pub mod failure;
pub mod frame_in_progress;
pub mod frames;
pub mod job;
pub mod limits;
pub mod manifest;
pub mod names;
pub mod options;
pub mod order;
pub mod output;
pub mod profile;
pub mod recorder;
pub mod requests;
pub mod run;
pub mod sample;
pub mod schedule;
pub mod session;
pub mod summary;
pub mod sys;
pub mod worker;
