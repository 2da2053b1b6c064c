//! Frames that the processor of a worker which only receives is to judge (`bpf/hand_over.h`): the driver's hook finds out
//! which are ours, and a kernel thread on that processor judges them.

use std::io;

use super::tables::JUDGES_ALL;
use crate::sys::bpf::receiving::HandedOver;
use crate::sys::bpf::{Area, Loaded, Object, Trace, map_number, set_processor};
use crate::sys::thread;

/// The most that the kernel allows: at 2 million frames a second the processor may be away for 8 ms.
const QUEUE_FRAMES: u32 = 16384;
/// The program in the driver's hook that hands over.
pub const IN_THE_HOOK: &str = "receive_for_other";
const ON_ITS_PROCESSOR: &str = "receive_handed_over";
const COUNT_REFUSED: &str = "count_refused";

/// The way to that processor, as long as this lives.
#[derive(Debug)]
pub struct HandOver {
    counts: Area<HandedOver>,
    _trace: Trace,
}

impl HandOver {
    /// Tells an object that is not loaded yet to which processor frames go; without one, nothing of this is loaded.
    pub fn prepare(object: &mut Object, processor: Option<u32>) -> io::Result<()> {
        let Some(processor) = processor else {
            object.leave_out(IN_THE_HOOK)?;
            object.leave_out(ON_ITS_PROCESSOR)?;
            return object.leave_out(COUNT_REFUSED);
        };
        object.leave_out(JUDGES_ALL)?;
        object.set_entries("processors", processor + 1)?;
        object.set_constants(".rodata.hand_over", &processor.to_ne_bytes())
    }

    /// Opens the way.
    pub fn begin(object: &Loaded, processor: u32) -> io::Result<Self> {
        let map = object.map("processors")?;
        set_processor(map, processor, QUEUE_FRAMES, object.program(ON_ITS_PROCESSOR)?)?;
        let number = map_number(map)?;
        // It stands for a worker, which is preferred too.
        thread::prefer_kernel_thread(&format!("cpumap/{processor}/map:{number}"));
        let mut counts = Area::new(object.map("handed_over")?, 1)?;
        counts.set(0, HandedOver { refused: 0, map: number, padding: 0 });
        Ok(Self { counts, _trace: object.attach(COUNT_REFUSED)? })
    }

    /// Frames that the processor had no place for, so far.
    pub fn refused(&self) -> u64 {
        self.counts.get(0).refused
    }
}
