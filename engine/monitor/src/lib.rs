//! `nicbench-monitor`: what a host does while it is measured, sampled at an interval, at hardly any cost.
//!
//! Files stay open and are read again in place, a sample takes no memory once everything was seen, and what it costs is
//! among what it tells.

pub mod census;
pub mod changes;
pub mod input;
pub mod open_file;
pub mod output;
pub mod record;
pub mod sampler;
pub mod session;
pub mod sources;
mod stat;
pub mod sys;
pub mod text;
