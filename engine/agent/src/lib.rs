//! Runs commands in a virtual machine for a controller outside, over a serial port: one conversation, many commands.

mod answers;
pub mod frame;
mod process;
pub mod session;
mod sys;
