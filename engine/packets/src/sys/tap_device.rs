//! An interface whose frames a program writes and reads (Documentation/networking/tuntap.rst).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";

/// An interface that is there as long as this is, also where it was moved to another namespace.
#[derive(Debug)]
pub struct TapDevice {
    file: File,
}

impl TapDevice {
    /// Makes an interface of this name, without an address, in the network namespace of the process.
    pub fn make(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE)?;
        // SAFETY: an `ifreq` is plain data, of which zeros are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= request.ifr_name.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an interface's name has 1 to 15 bytes"));
        }
        for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *place = byte as libc::c_char;
        }
        // One of this name that is there already is somebody else's.
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes an `ifreq`, which `request` is.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        if result == 0 { Ok(Self { file }) } else { Err(io::Error::last_os_error()) }
    }

    /// Has the frame arrive at the interface; whether the kernel took it.
    pub fn write(&mut self, frame: &[u8]) -> bool {
        self.file.write(frame).is_ok_and(|written| written == frame.len())
    }

    /// Reads the next frame that the kernel sent into `buffer`; `None` if there is none.
    pub fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        let length = self.file.read(buffer).ok()?;
        buffer.get(..length)
    }
}
