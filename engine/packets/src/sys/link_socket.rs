//! A packet socket beside the driver of an interface: what asks for neighbours comes here, and single frames go out.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Longer than a frame that asks for a neighbour.
const LONGEST: usize = 2048;
/// Bytes of the two addresses, behind which a tag stands.
const ADDRESSES: usize = 12;

/// `struct tpacket_auxdata` of packet(7).
#[repr(C)]
#[derive(Clone, Copy)]
struct Auxiliary {
    status: u32,
    length: u32,
    kept: u32,
    link: u16,
    network: u16,
    tag: u16,
    tag_type: u16,
}

const HAS_TAG: u32 = 1 << 4;
const HAS_TAG_TYPE: u32 = 1 << 6;
const TAG_TYPE: u16 = 0x8100;

/// ARP and ICMPv6 alone: everything else stays with the kernel, however much it is. The kernel takes one tag off.
const FILTER: [(u16, u8, u8, u32); 7] = [
    (0x28, 0, 0, 12),
    (0x15, 3, 0, 0x0806),
    (0x15, 0, 3, 0x86DD),
    (0x30, 0, 0, 20),
    (0x15, 0, 1, 58),
    (0x06, 0, 0, LONGEST as u32),
    (0x06, 0, 0, 0),
];

/// The socket. Frames that this machine sends by the interface are not seen.
#[derive(Debug)]
pub struct LinkSocket {
    socket: OwnedFd,
    buffer: Box<[u8; LONGEST]>,
}

impl LinkSocket {
    /// Opens it at an interface; a receive that finds nothing ends after `patience`.
    ///
    /// # Errors
    /// Where this process may not, or the interface is gone.
    pub fn open(interface: u32, patience: Duration) -> io::Result<Self> {
        // Nothing is received before the filter is there: the protocol is that of `bind`.
        // SAFETY: no memory is handed over.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and nobody else's.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let mut filter = FILTER.map(|(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1i32)?;
        set(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        let patience = libc::timeval {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_usec: libc::suseconds_t::from(patience.subsec_micros() as i32),
        };
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &patience)?;
        // SAFETY: all zeros is a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: `address` is of this length.
        check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
        Ok(Self { socket, buffer: Box::new([0; LONGEST]) })
    }

    /// Waits for a frame, with its tag where it had one; `None` where none came.
    pub fn receive(&mut self) -> Option<Vec<u8>> {
        let mut control = [0u64; 16];
        let mut vector =
            libc::iovec { iov_base: self.buffer.as_mut_ptr().cast::<libc::c_void>(), iov_len: self.buffer.len() };
        // SAFETY: all zeros is a valid msghdr.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: the message names two buffers of their own lengths, which live until the call is over.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, 0) };
        let mut frame = self.buffer.get(..usize::try_from(length).ok()?)?.to_vec();
        if let Some(tag) = tag_of(&message).filter(|_| frame.len() >= ADDRESSES) {
            frame.splice(ADDRESSES..ADDRESSES, tag);
        }
        Some(frame)
    }

    /// Sends a frame; whether the driver took it.
    pub fn send(&self, frame: &[u8]) -> bool {
        // SAFETY: the frame is of this length.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
        usize::try_from(sent).is_ok_and(|sent| sent == frame.len())
    }
}

/// The tag that the kernel took off, as it was in the frame.
fn tag_of(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the kernel wrote the control messages of this message, and their lengths.
    let header = unsafe { libc::CMSG_FIRSTHDR(message).as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    // SAFETY: a message of this type holds the structure, at any alignment.
    let told = unsafe { libc::CMSG_DATA(header).cast::<Auxiliary>().read_unaligned() };
    let kind = if told.status & HAS_TAG_TYPE == 0 { TAG_TYPE } else { told.tag_type };
    let [[a, b], [c, d]] = [kind.to_be_bytes(), told.tag.to_be_bytes()];
    (told.status & HAS_TAG != 0).then_some([a, b, c, d])
}

fn set<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is of this length, and what it points to lives as long.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const *value).cast(), length) })
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
