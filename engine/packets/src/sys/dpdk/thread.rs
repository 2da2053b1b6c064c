//! EAL's further threads: a worker needs one of them, for the pools keep buffers in reserve for EAL's threads only.

use std::ffi::{c_int, c_void};

use super::ffi;
use crate::error::{EngineError, ErrorKind};

type Task = Box<dyn FnOnce() + Send>;

/// A task that runs on a thread of EAL's; dropping this waits for its end.
#[derive(Debug)]
pub struct EalThread {
    number: u32,
}

impl EalThread {
    /// Runs `task` on thread `number` (from 1; EAL was started with a CPU for it).
    pub fn launch(number: u32, task: Task) -> Result<Self, EngineError> {
        let argument = Box::into_raw(Box::new(task)).cast::<c_void>();
        // SAFETY: `run` takes back the box that was just given up, exactly once, if the launch succeeds.
        let result = unsafe { ffi::nb_launch(number, run, argument) };
        if result == 0 {
            return Ok(Self { number });
        }
        // SAFETY: the launch failed, so nobody else has the box.
        drop(unsafe { Box::from_raw(argument.cast::<Task>()) });
        let message = format!("worker {number} did not start: {}", ffi::error_text(result));
        Err(EngineError::new(ErrorKind::Eal, message, "replace the process"))
    }
}

impl Drop for EalThread {
    fn drop(&mut self) {
        // SAFETY: waits for a thread that `launch` started.
        unsafe { ffi::nb_wait(self.number) };
    }
}

extern "C" fn run(argument: *mut c_void) -> c_int {
    // SAFETY: the box that `launch` gave up; EAL calls this once per launch.
    let task = unsafe { Box::from_raw(argument.cast::<Task>()) };
    // A panic must not unwind into C; it has said what it had to say.
    c_int::from(std::panic::catch_unwind(std::panic::AssertUnwindSafe(task)).is_err())
}
