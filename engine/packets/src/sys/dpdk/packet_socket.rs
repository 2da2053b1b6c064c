//! The drops of a packet socket that DPDK opened: its driver does not read them.

use std::os::fd::RawFd;

use crate::sys::xsk::{Plain, get_option, open_sockets};

/// `struct tpacket_stats` of packet(7). The kernel sets it back to zero whenever it is read.
#[repr(C)]
#[derive(Clone, Copy)]
struct TpacketStatistics {
    packets: u32,
    drops: u32,
}

impl Plain for TpacketStatistics {}

/// A socket whose descriptor belongs to DPDK; here it is only asked, never closed.
#[derive(Debug)]
pub(super) struct PacketSocket {
    descriptor: RawFd,
    dropped: u64,
}

impl PacketSocket {
    /// The socket of this process that is bound to the interface. (DPDK opens it already while EAL starts.)
    pub fn find(interface: u32) -> Option<Self> {
        let mut sockets = open_sockets(libc::AF_PACKET).ok()?.into_iter();
        let descriptor = sockets.find(|&socket| bound_interface(socket) == Some(interface))?;
        let mut socket = Self { descriptor, dropped: 0 };
        // What came before the port was configured is nobody's loss.
        socket.read_dropped();
        socket.dropped = 0;
        Some(socket)
    }

    /// Frames that found the receive ring full, since `find`.
    pub fn read_dropped(&mut self) -> u64 {
        let reading = get_option::<TpacketStatistics>(self.descriptor, libc::SOL_PACKET, libc::PACKET_STATISTICS);
        self.dropped += reading.map_or(0, |reading| u64::from(reading.drops));
        self.dropped
    }
}

fn bound_interface(socket: RawFd) -> Option<u32> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<libc::sockaddr_ll>()).ok()?;
    // SAFETY: the kernel writes at most `length` bytes to `address`.
    let result = unsafe { libc::getsockname(socket, (&raw mut address).cast(), &mut length) };
    if result == 0 { u32::try_from(address.sll_ifindex).ok() } else { None }
}
