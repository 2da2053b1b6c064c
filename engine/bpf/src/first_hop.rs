//! Which Ethernet address frames to a host go to: asked of the kernel, by a datagram that it sends there.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The port of the discard service (RFC 863).
const DISCARD: u16 = 9;
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(200);

/// How frames to a host begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstHop {
    /// The address from which packets leave.
    pub from: IpAddr,
    pub own_mac: [u8; 6],
    /// Of the host, or of the gateway to it.
    pub peer_mac: [u8; 6],
}

/// The kernel's number of an interface of this namespace.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let text = CString::new(name)?;
    // SAFETY: the name is valid during the call.
    let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// What the kernel knows of an interface of this namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceFacts {
    /// The most bytes of a packet.
    pub mtu_bytes: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
}

/// Reads MTU and address of an interface.
pub fn interface_facts(name: &str) -> io::Result<InterfaceFacts> {
    let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0"))?;
    // SAFETY: zeros are a value of it.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    // SAFETY: the kernel writes within the request, whose name ends with a zero.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is the field that the call has written.
    let mtu_bytes = unsafe { request.ifr_ifru.ifru_mtu } as u32;
    // SAFETY: as above.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: this is the field that the call has written.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok(InterfaceFacts { mtu_bytes, mac: std::array::from_fn(|at| address[at] as u8) })
}

/// Has the kernel send a datagram to the host, and reads the addresses of the frame.
///
/// # Errors
/// `TimedOut`: no frame left by this interface. There is no route, or nobody answers for the address.
pub fn find_first_hop(interface: u32, to: IpAddr) -> io::Result<FirstHop> {
    let frames = packet_socket(interface)?;
    let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let datagrams = UdpSocket::bind(any)?;
    datagrams.connect(SocketAddr::new(to, DISCARD))?;
    let from = datagrams.local_addr()?.ip();
    let started = Instant::now();
    let mut buffer = [0u8; 128];
    while started.elapsed() < PATIENCE {
        // An answer of ICMP makes the next one fail, which does not matter.
        let _ = datagrams.send(&[0]);
        let sent = Instant::now();
        while sent.elapsed() < AGAIN {
            // SAFETY: the kernel writes at most as many bytes as the buffer has.
            let length = unsafe { libc::recv(frames.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(length) = usize::try_from(length) else { break };
            if let Some((peer_mac, own_mac)) = macs_of(&buffer[..length], to) {
                return Ok(FirstHop { from, own_mac, peer_mac });
            }
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Destination and source of a frame that carries a packet to this address.
fn macs_of(frame: &[u8], to: IpAddr) -> Option<([u8; 6], [u8; 6])> {
    // The tag of a VLAN is here only if the driver has not taken it from the kernel.
    let link = if frame.get(12..14)? == [0x81, 0x00] { 18 } else { 14 };
    let (kind, packet) = (frame.get(link - 2..link)?, frame.get(link..)?);
    let is_there = match to {
        IpAddr::V4(to) => kind == [0x08, 0x00] && packet.get(16..20)? == to.octets(),
        IpAddr::V6(to) => kind == [0x86, 0xDD] && packet.get(24..40)? == to.octets(),
    };
    is_there.then(|| (frame[..6].try_into().unwrap_or_default(), frame[6..12].try_into().unwrap_or_default()))
}

/// A socket that gets every frame of an interface, those that leave too.
fn packet_socket(interface: u32) -> io::Result<OwnedFd> {
    let every = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: no pointers.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(every)) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: zeros are a value of it.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = every;
    address.sll_ifindex = interface as i32;
    let wait = libc::timeval { tv_sec: 0, tv_usec: AGAIN.subsec_micros().into() };
    // SAFETY: both structures live during the calls, which get their sizes.
    let failed = unsafe {
        let length = size_of::<libc::timeval>() as u32;
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const wait).cast(), length) < 0
            || libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32) < 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(socket) }
}

#[cfg(test)]
mod tests {
    use super::macs_of;

    #[test]
    fn the_frame_of_a_datagram_says_where_it_goes() {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        frame.extend([0; 16]);
        frame.extend([198, 18, 0, 2]);
        let found = macs_of(&frame, "198.18.0.2".parse().unwrap());
        assert_eq!(found, Some(([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])));
        assert_eq!(macs_of(&frame, "198.18.0.3".parse().unwrap()), None);
        frame.splice(12..12, [0x81, 0x00, 0, 100]);
        assert_eq!(macs_of(&frame, "198.18.0.2".parse().unwrap()), found);
    }
}
