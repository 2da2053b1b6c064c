//! What the kernel knows of the AF_XDP sockets that DPDK opened: drops, completions, send buffer.

use std::collections::BTreeSet;
use std::io;
use std::mem::size_of;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::port::MAXIMUM_BURST;

/// Frames that one call may take from a transmit ring: the largest burst, so that each burst is one call. Not more: over
/// a veth, calls of 256 frames overrun the 256 places of the receiving end, and a fifth of the rate is left.
const TRANSMIT_BUDGET_FRAMES: u32 = MAXIMUM_BURST as u32;

/// include/uapi/linux/if_xdp.h of Linux 6.17; the crate libc does not know it yet.
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// The descriptors of this process that are sockets of a domain (`AF_XDP`, `AF_PACKET`).
pub fn open_sockets(wanted: libc::c_int) -> io::Result<BTreeSet<RawFd>> {
    let mut sockets = BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let Some(descriptor) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if get_option::<libc::c_int>(descriptor, libc::SOL_SOCKET, libc::SO_DOMAIN).is_ok_and(|domain| domain == wanted)
        {
            sockets.insert(descriptor);
        }
    }
    Ok(sockets)
}

/// The kernel's counters of one socket (`struct xdp_statistics`).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct XskStatistics {
    /// Frames dropped for other reasons than a full receive ring: no buffer in the fill ring (copy mode), or a frame
    /// too long.
    pub rx_dropped: u64,
    pub rx_invalid_descs: u64,
    pub tx_invalid_descs: u64,
    /// Frames dropped because the receive ring was full.
    pub rx_ring_full: u64,
    /// How often a buffer was wanted and the fill ring had none.
    pub rx_fill_ring_empty_descs: u64,
    /// How often the kernel looked for something to send and found nothing: no fault.
    pub tx_ring_empty_descs: u64,
}

impl XskStatistics {
    /// Frames that arrived and were lost for want of room in this process.
    ///
    /// In copy mode the kernel counts a frame that finds the fill ring empty twice, as `rx_fill_ring_empty_descs` in
    /// `__xp_alloc` and as `rx_dropped` in `__xsk_rcv`, so that the former must not be added. In zero-copy mode the
    /// driver takes buffers ahead of frames: `rx_dropped` does not see the shortage, and `rx_fill_ring_empty_descs`
    /// is the only sign of it.
    pub fn receive_overrun(&self, zero_copy: bool) -> u64 {
        let starved = if zero_copy { self.rx_fill_ring_empty_descs } else { 0 };
        self.rx_dropped + self.rx_ring_full + starved
    }

    /// Every counter by the name that reports use.
    pub fn counters_by_name(&self) -> [(&'static str, u64); 6] {
        [
            ("xdp_rx_dropped", self.rx_dropped),
            ("xdp_rx_invalid_descs", self.rx_invalid_descs),
            ("xdp_tx_invalid_descs", self.tx_invalid_descs),
            ("xdp_rx_ring_full", self.rx_ring_full),
            ("xdp_rx_fill_ring_empty_descs", self.rx_fill_ring_empty_descs),
            ("xdp_tx_ring_empty_descs", self.tx_ring_empty_descs),
        ]
    }
}

/// A 32-bit index that only grows, as 64 bits. It must be read at least once in each 2^32 steps.
#[derive(Debug, Default)]
struct Extended {
    last: u32,
    total: u64,
}

impl Extended {
    fn advance(&mut self, index: u32) -> u64 {
        self.total += u64::from(index.wrapping_sub(self.last));
        self.last = index;
        self.total
    }
}

/// A bound AF_XDP socket whose descriptor belongs to DPDK; here it is only asked, never closed.
#[derive(Debug)]
pub struct Xsk {
    descriptor: RawFd,
    zero_copy: bool,
    _page: Option<Page>,
    producer: *const AtomicU32,
    completions: Extended,
}

/// Our own mapping of the beginning of a completion ring.
#[derive(Debug)]
struct Page {
    start: *mut libc::c_void,
    bytes: usize,
}

impl Xsk {
    /// Maps the completion ring of a bound socket a second time; before Linux 6.4, which refuses that (EBUSY), it reads
    /// DPDK's own mapping. The ring's producer index is the kernel's exact count of buffers given back, whoever takes
    /// them out of the ring.
    pub fn new(descriptor: RawFd) -> io::Result<Self> {
        let offsets: libc::xdp_mmap_offsets = get_option(descriptor, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let options: libc::xdp_options = get_option(descriptor, libc::SOL_XDP, libc::XDP_OPTIONS)?;
        let offset = usize::try_from(offsets.cr.producer).map_err(io::Error::other)?;
        let bytes = offset + size_of::<AtomicU32>();
        let (ring, page) = match Page::map(descriptor, bytes) {
            Ok(page) => (page.start.cast::<u8>().cast_const(), Some(page)),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => (find_mapped_ring(descriptor, bytes)?, None),
            Err(error) => return Err(error),
        };
        let producer = ring.wrapping_add(offset).cast::<AtomicU32>();
        let mut xsk = Self {
            descriptor,
            zero_copy: options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0,
            _page: page,
            producer,
            completions: Extended::default(),
        };
        xsk.completions.last = xsk.producer_index();
        Ok(xsk)
    }

    fn producer_index(&self) -> u32 {
        // SAFETY: inside the mapping, aligned as the kernel's own u32, and mapped for as long as `self` lives: by us,
        // or by DPDK, which closes the port, and with it the ring, after its `Xsk` is gone.
        unsafe { (*self.producer).load(Ordering::Acquire) }
    }

    /// Frames that the kernel has finished with since `new`: sent, or dropped by the device. Call it at least once in
    /// 2^32 frames.
    pub fn completions(&mut self) -> u64 {
        let index = self.producer_index();
        self.completions.advance(index)
    }

    /// All of `XDP_STATISTICS`, cumulative.
    pub fn statistics(&self) -> io::Result<XskStatistics> {
        get_option(self.descriptor, libc::SOL_XDP, libc::XDP_STATISTICS)
    }

    /// True where the driver shares buffers with this process instead of copying.
    pub fn zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Asks for a send buffer beyond the system's limit; `send_buffer_bytes` tells what was granted. Needs
    /// CAP_NET_ADMIN.
    pub fn set_send_buffer(&self, bytes: u64) -> io::Result<()> {
        // The kernel doubles what it is asked for (socket(7)), to leave room for its own bookkeeping.
        let half = libc::c_int::try_from(bytes / 2).unwrap_or(libc::c_int::MAX / 2);
        set_option(self.descriptor, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, half)
    }

    /// Lets one call take as many frames from the transmit ring as the largest burst has, where the kernel's default in
    /// copy mode is 32; the ring bounds it. Returns the number, or `None` where the default stands: the kernel is older
    /// than 6.17 or refuses, or the driver takes frames without a copy and has no such limit.
    ///
    /// Source: Documentation/networking/af_xdp.rst of Linux 6.17, XDP_MAX_TX_SKB_BUDGET.
    pub fn raise_transmit_budget(&self, ring_frames: u32) -> Option<u32> {
        let frames = TRANSMIT_BUDGET_FRAMES.min(ring_frames);
        let value = libc::c_int::try_from(frames).ok().filter(|_| !self.zero_copy)?;
        set_option(self.descriptor, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, value).ok().map(|()| frames)
    }

    /// The send buffer, read back.
    pub fn send_buffer_bytes(&self) -> io::Result<u64> {
        let bytes: libc::c_int = get_option(self.descriptor, libc::SOL_SOCKET, libc::SO_SNDBUF)?;
        u64::try_from(bytes).map_err(io::Error::other)
    }
}

impl Page {
    fn map(descriptor: RawFd, bytes: usize) -> io::Result<Self> {
        let at = i64::try_from(libc::XDP_UMEM_PGOFF_COMPLETION_RING).map_err(io::Error::other)?;
        // SAFETY: a new read-only mapping of a ring that the socket has since its bind; the kernel checks descriptor,
        // offset and length.
        let start = unsafe { libc::mmap(null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, descriptor, at) };
        if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self { start, bytes }) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the mapping that `map` made, unmapped once; nothing points into it after this.
        unsafe { libc::munmap(self.start, self.bytes) };
    }
}

/// Where this process has mapped the completion ring of a socket, at least so many bytes of it.
fn find_mapped_ring(descriptor: RawFd, bytes: usize) -> io::Result<*const u8> {
    let socket = std::fs::read_link(format!("/proc/self/fd/{descriptor}"))?;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let found = find_ring(&maps, &socket.to_string_lossy()).filter(|(_, length)| *length >= bytes);
    let (start, _) = found.ok_or_else(|| io::Error::other("its completion ring is not mapped"))?;
    Ok(std::ptr::with_exposed_provenance(start))
}

/// Start and length of the mapping of a socket's completion ring, of the lines of proc_pid_maps(5).
fn find_ring(maps: &str, socket: &str) -> Option<(usize, usize)> {
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = words.nth(1).and_then(|word| u64::from_str_radix(word, 16).ok())?;
        if offset != libc::XDP_UMEM_PGOFF_COMPLETION_RING || words.nth(2) != Some(socket) {
            return None;
        }
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        Some((start, end.checked_sub(start)?))
    })
}

/// Plain data that the kernel fills in, for which any bytes are a valid value.
pub(super) trait Plain: Sized {}
impl Plain for libc::c_int {}
impl Plain for libc::xdp_mmap_offsets {}
impl Plain for libc::xdp_options {}
impl Plain for XskStatistics {}

pub(super) fn get_option<T: Plain>(descriptor: RawFd, level: libc::c_int, name: libc::c_int) -> io::Result<T> {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    let mut length = libc::socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    // SAFETY: the kernel writes at most `length` bytes into `value`, and tells how many.
    let result = unsafe { libc::getsockopt(descriptor, level, name, value.as_mut_ptr().cast(), &mut length) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: zeroed and then partly or wholly filled; `T` is plain data (older kernels know fewer of the statistics).
    Ok(unsafe { value.assume_init() })
}

fn set_option(descriptor: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    // SAFETY: the kernel reads `length` bytes of `value` during the call.
    let result = unsafe { libc::setsockopt(descriptor, level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_that_wraps_goes_on_counting() {
        let mut extended = Extended { last: u32::MAX - 1, total: 0 };
        assert_eq!(extended.advance(3), 5);
        assert_eq!(extended.advance(3), 5);
        assert_eq!(extended.advance(10), 12);
    }

    #[test]
    fn the_completion_ring_of_a_socket_is_known_by_its_offset_in_the_map() {
        let maps = "\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 77 /usr/bin/nicbench-packets
7f5ac84e0000-7f5ac84e9000 rw-s 100000000 00:08 4711 socket:[4711]
7f5ac84f0000-7f5ac84f9000 rw-s 180000000 00:08 4712 socket:[4712]
7f5ac8500000-7f5ac8509000 rw-s 180000000 00:08 4711 socket:[4711]
7f5ac8600000-7f5ac8609000 rw-p 00000000 00:00 0
";
        assert_eq!(find_ring(maps, "socket:[4711]"), Some((0x7f5a_c850_0000, 0x9000)));
        assert_eq!(find_ring(maps, "socket:[4713]"), None);
    }

    #[test]
    fn in_copy_mode_a_frame_without_a_buffer_is_one_overrun() {
        let statistics =
            XskStatistics { rx_dropped: 7, rx_ring_full: 2, rx_fill_ring_empty_descs: 7, ..Default::default() };
        assert_eq!(statistics.receive_overrun(false), 9);
    }

    #[test]
    fn in_zero_copy_mode_an_empty_fill_ring_is_the_only_sign_of_a_shortage() {
        let statistics =
            XskStatistics { rx_dropped: 0, rx_ring_full: 2, rx_fill_ring_empty_descs: 7, ..Default::default() };
        assert_eq!(statistics.receive_overrun(true), 9);
    }

    #[test]
    fn a_kernel_that_refuses_a_larger_transmit_budget_keeps_its_own() {
        use std::os::fd::AsRawFd;
        // No AF_XDP socket, so that every kernel refuses.
        let other = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let xsk = Xsk {
            descriptor: other.as_raw_fd(),
            zero_copy: false,
            _page: None,
            producer: std::ptr::null(),
            completions: Extended::default(),
        };
        assert_eq!(xsk.raise_transmit_budget(2048), None);
    }

    #[test]
    fn a_process_without_af_xdp_has_no_sockets_of_that_kind() {
        let other = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        assert!(open_sockets(libc::AF_XDP).expect("a list of descriptors").is_empty());
        drop(other);
    }
}
