//! BPF objects that are part of this program: loaded by libbpf, their maps mapped into memory, attached by links that
//! end with the process, whatever ends it.

mod area;
pub mod generating;
mod kernel;
mod object;
pub mod receiving;
mod ring;

pub use area::{Area, Plain};
pub use kernel::{
    LARGEST_BATCH, LiveFrames, XdpLink, attached_program, map_number, resets_frames, set_devices, set_processor,
    test_frame, test_run,
};
pub use object::{Loaded, Object, Trace};
pub use ring::Ring;
