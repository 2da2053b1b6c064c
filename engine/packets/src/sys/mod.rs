//! All `unsafe` and FFI of the engine.
#![allow(unsafe_code)]

pub mod frame;
