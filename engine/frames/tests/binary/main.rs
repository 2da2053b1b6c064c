//! The binary itself, on files in memory.

mod command_line;
mod common;
mod conversation;
mod faults;
