//! The program that redirects frames to AF_XDP sockets, in memory, under a path that DPDK's driver can open.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};

use super::options::{PortKind, PortOptions};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/redirect.o"));

/// Gives the program to every AF_XDP port that names none. Keep the file until the ports are open.
///
/// With a program of its own DPDK's driver leaves it to the kernel how it is attached: by the interface's driver, or
/// (generic XDP) by the kernel for it.
pub(super) fn add_program(ports: &[PortOptions]) -> io::Result<(Vec<PortOptions>, File)> {
    let mut file = memory_file()?;
    file.write_all(PROGRAM)?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let mut ports = ports.to_vec();
    for port in &mut ports {
        if let PortKind::AfXdp { xdp_program: program @ None, .. } = &mut port.kind {
            *program = Some(path.clone());
        }
    }
    Ok((ports, file))
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string, and nobody else has the descriptor.
    unsafe {
        match libc::memfd_create(c"redirect".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(io::Error::last_os_error()),
            descriptor => Ok(File::from_raw_fd(descriptor)),
        }
    }
}
