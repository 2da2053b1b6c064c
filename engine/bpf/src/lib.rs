//! BPF objects that are part of a program: loaded by libbpf, their maps mapped into memory, attached by links that end
//! with the process, whatever ends it.
#![allow(unsafe_code)]

mod area;
mod first_hop;
mod interruption;
mod kernel;
mod object;
mod ring;

pub use area::{Area, Plain};
pub use first_hop::{FirstHop, InterfaceFacts, find_first_hop, interface_facts, interface_index};
pub use interruption::{end_call, install_interruption, this_thread};
pub use kernel::{
    LARGEST_BATCH, LARGEST_FRAME, LiveFrames, XdpLink, attached_program, map_number, resets_frames, set_devices,
    set_devices_with_program, set_processor, test_frame, test_run,
};
pub use object::{Loaded, Object, Trace, possible_cpus};
pub use ring::Ring;
