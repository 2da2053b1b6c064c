//! A card's clock as the kernel shows it (PTP hardware clock, Documentation/driver-api/ptp.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// An open clock.
#[derive(Debug)]
pub struct HardwareClock {
    file: File,
}

impl HardwareClock {
    /// Opens the clock `/dev/ptp<number>`.
    pub fn open(number: u32) -> io::Result<Self> {
        Ok(Self { file: File::open(format!("/dev/ptp{number}"))? })
    }

    /// Its nanoseconds; `None` where the driver gives none.
    pub fn read(&self) -> Option<u64> {
        // FD_TO_CLOCKID of clock_getres(2).
        let clock = (!self.file.as_raw_fd() << 3) | 3;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec for the call to fill.
        let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
        (result == 0).then(|| (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64))
    }
}
