//! Sockets on which the kernel tells of changes, of the network namespace in which they were opened.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Memory for messages that nobody has read yet; it is taken only where there are any.
const RECEIVE_BYTES: libc::c_int = 1 << 20;
/// A dump is answered at once; a kernel that does not must not hold up the monitor.
const PATIENCE: libc::timeval = libc::timeval { tv_sec: 1, tv_usec: 0 };

/// A netlink socket.
#[derive(Debug)]
pub struct Netlink {
    descriptor: OwnedFd,
}

impl Netlink {
    /// A socket of this `protocol` that hears these groups of it.
    pub fn open(protocol: libc::c_int, groups: &[u32]) -> io::Result<Self> {
        // SAFETY: makes a descriptor, which nobody else has.
        let descriptor = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open and has no other owner.
        let netlink = Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } };
        // More memory than others may have is a wish: the socket works with less.
        let _ = netlink.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BYTES);
        netlink.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &PATIENCE)?;
        netlink.bind()?;
        groups.iter().try_for_each(|group| netlink.join(*group))?;
        Ok(netlink)
    }

    /// From now on it hears this group, too.
    pub fn join(&self, group: u32) -> io::Result<()> {
        self.set(libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &group)
    }

    /// Takes a port of its own: a socket without one has that of the kernel, whose messages do not come back to it.
    fn bind(&self) -> io::Result<()> {
        // SAFETY: an address of zeros is one that leaves the port to the kernel.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: reads `address`, which outlives the call; `length` is its own.
        let result = unsafe { libc::bind(self.as_raw_fd(), (&raw const address).cast(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// From now on the kernel throws away the messages for which the program gives 0.
    pub fn filter(&self, program: &mut [libc::sock_filter]) -> io::Result<()> {
        let length = u16::try_from(program.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Sends a request to the kernel.
    pub fn ask(&self, request: &[u8]) -> io::Result<()> {
        // SAFETY: reads `request`, which outlives the call.
        let sent = unsafe { libc::send(self.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The next messages; with `wait` it waits for them, else `WouldBlock` says that there are none.
    pub fn receive<'b>(&self, buffer: &'b mut [u8], wait: bool) -> io::Result<&'b [u8]> {
        let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which outlives the call.
        let count = unsafe { libc::recv(self.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        match usize::try_from(count) {
            Ok(count) => Ok(&buffer[..count.min(buffer.len())]),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }

    fn set<Value>(&self, level: libc::c_int, name: libc::c_int, value: &Value) -> io::Result<()> {
        let length = size_of::<Value>() as libc::socklen_t;
        // SAFETY: reads `value`, and what it points to, which outlive the call; `length` is its own.
        let result =
            unsafe { libc::setsockopt(self.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsRawFd for Netlink {
    fn as_raw_fd(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }
}
