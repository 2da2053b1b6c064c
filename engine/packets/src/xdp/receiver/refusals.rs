//! Why a receiver cannot be: what the kernel said, and what to do about it.

use std::io;

use crate::error::{EngineError, ErrorKind};
use crate::sys::bpf::attached_program;

/// Names the port.
pub fn at_port(name: &str, error: EngineError) -> EngineError {
    EngineError { message: format!("port {name}: {}", error.message), ..error }
}

/// Why the program or its tables are not in the kernel; one that reads a card's stamps has reasons of its own.
pub fn not_loaded(error: &io::Error, reads_stamps: bool) -> EngineError {
    let (why, next) = match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ESRCH | libc::ENOENT) if reads_stamps => (
            error.to_string(),
            "the card's driver must give its stamps to XDP (Linux 6.3; nicbench doctor --verbose says which do); use \
             the time stamps `tsc`",
        ),
        Some(libc::EPERM) => (error.to_string(), "run it as root"),
        Some(libc::ENOMEM) => (error.to_string(), "free memory, or use fewer flows and queues"),
        // The verifier's words for what it cannot follow; they say nothing of the user's rights.
        Some(libc::EACCES | libc::EINVAL | libc::E2BIG) => {
            (format!("its verifier refuses it ({error})"), "use a newer kernel, or `driver: net_af_xdp`")
        }
        _ => (error.to_string(), "a kernel of 5.18 or newer with BPF is needed; see what it said on stderr"),
    };
    EngineError::new(ErrorKind::Port, format!("the kernel did not take the receiving program: {why}"), next)
}

/// Why no program is on the interface.
pub fn refusal(name: &str, interface: u32, error: &io::Error) -> EngineError {
    let other = attached_program(interface);
    let (what, next) = match (error.raw_os_error(), other) {
        (_, Some(id)) => (
            format!("another's XDP program is there (id {id})"),
            format!("see whose it is: bpftool prog show id {id}; it may be detached, or use `driver: net_af_xdp`"),
        ),
        (Some(libc::EOPNOTSUPP), None) => (
            format!("its driver does not take XDP programs in native mode: {error}"),
            "use `driver: net_af_xdp`".to_owned(),
        ),
        // ERANGE: a veth, whose peer's MTU it is.
        (Some(libc::EINVAL | libc::ERANGE), None) => (
            format!("its driver does not take XDP programs as it is set up: {error}"),
            "lower its MTU, and that of a veth's peer, below 3500 bytes, or use `driver: net_af_xdp`".to_owned(),
        ),
        (Some(libc::EPERM | libc::EACCES), None) => {
            ("this process may not attach one".to_owned(), "run it as root".to_owned())
        }
        _ => (error.to_string(), "see the kernel's log: dmesg".to_owned()),
    };
    EngineError::new(ErrorKind::Port, format!("port {name}: no XDP program could be attached: {what}"), next)
}
