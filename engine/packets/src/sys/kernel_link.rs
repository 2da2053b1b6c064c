//! What the kernel says of an interface: by netlink and ioctl, for /sys shows the outer namespace's interfaces.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `ETHTOOL_GSET` of linux/ethtool.h, and where its answer holds the speed in Mb/s (two halves).
const ETHTOOL_GSET: u32 = 1;
const SPEED_LOW: usize = 12;
const SPEED_HIGH: usize = 28;
/// `ETHTOOL_GDRVINFO`.
const ETHTOOL_GDRVINFO: u32 = 3;
/// `ETHTOOL_GET_TS_INFO`, its size, and where its answer holds the number of the clock and the filters of stamps.
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const TS_INFO_BYTES: usize = 44;
const TS_CLOCK: usize = 8;
const TS_RECEIVE_FILTERS: usize = 28;
/// `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h, as a bit.
const FILTER_ALL: u32 = 1 << 1;
/// `IFLA_PARENT_DEV_NAME` of linux/if_link.h (Linux 5.14).
const PARENT_DEVICE: u16 = 56;
/// A driver whose devices are made by software.
const SIMULATED_DEVICES: &str = "netdevsim";
/// Places of `rx_dropped` and `tx_dropped` in `struct rtnl_link_stats64`.
const RECEIVE_DROPPED: usize = 6 * 8;
const TRANSMIT_DROPPED: usize = 7 * 8;

/// A kernel interface that stays open to questions.
#[derive(Debug)]
pub struct KernelLink {
    name: CString,
    index: u32,
    netlink: OwnedFd,
}

/// One answer; what the kernel left out is `None`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    pub promiscuous: bool,
    /// Whether a device of a bus stands behind it.
    pub has_device: bool,
    /// Its Ethernet address.
    pub mac: Option<[u8; 6]>,
    pub receive_queues: Option<u32>,
    pub mtu_bytes: Option<u32>,
    pub carrier: Option<bool>,
    pub carrier_changes: Option<u64>,
    pub receive_dropped: Option<u64>,
    pub transmit_dropped: Option<u64>,
}

/// What a card says of its time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeStamping {
    /// Of `/dev/ptp<number>`.
    pub clock: u32,
    pub stamps_all_frames: bool,
}

impl KernelLink {
    /// Fails where there is no interface of this name in the process's network namespace.
    pub fn open(name: &str) -> io::Result<Self> {
        let name = CString::new(name)?;
        // SAFETY: a text that ends with a zero byte.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers; the result is checked before it is owned.
        let descriptor =
            unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Self { name, index, netlink: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// The interface's number.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Asks for everything at once (RTM_GETLINK).
    pub fn state(&self) -> io::Result<LinkState> {
        let request = link_request(self.index);
        let mut answer = vec![0u8; 32 * 1024];
        // SAFETY: `request` and `answer` are valid for the lengths given with them.
        let length = unsafe {
            let descriptor = self.netlink.as_raw_fd();
            if libc::send(descriptor, request.as_ptr().cast(), request.len(), 0) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::recv(descriptor, answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        parse_link(&answer[..length]).ok_or_else(|| io::Error::other("the kernel did not describe the interface"))
    }

    /// The state, empty where the kernel does not tell it, and then why not.
    pub fn state_or_why_not(&self) -> (LinkState, Option<String>) {
        match self.state() {
            Ok(state) => (state, None),
            Err(error) => (LinkState::default(), Some(error.to_string())),
        }
    }

    /// The name of the driver; `None` where it does not say.
    pub fn driver(&self) -> Option<String> {
        // `struct ethtool_drvinfo`: the command, then 32 bytes of the driver's name.
        let mut command = [0u8; 196];
        command[..4].copy_from_slice(&ETHTOOL_GDRVINFO.to_ne_bytes());
        self.ask_ethtool(&mut command).then(|| {
            let name = command[4..36].split(|byte| *byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        })
    }

    /// Has the driver answer an ethtool command in its own bytes; returns whether it did.
    fn ask_ethtool(&self, command: &mut [u8]) -> bool {
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.name.as_bytes_with_nul()) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = command.as_mut_ptr().cast();
        // SAFETY: the kernel writes the structure of the command, for which the callers have room, to `command`; a
        // netlink socket takes the ioctls of interfaces as any socket.
        unsafe { libc::ioctl(self.netlink.as_raw_fd(), libc::SIOCETHTOOL, &mut request) == 0 }
    }

    /// What its driver says of time stamps; `None` where it has no clock.
    pub fn time_stamping(&self) -> Option<TimeStamping> {
        let mut command = [0u8; TS_INFO_BYTES];
        command[..4].copy_from_slice(&ETHTOOL_GET_TS_INFO.to_ne_bytes());
        let number = |command: &[u8], at| number::<4>(command, at).and_then(|number| u32::try_from(number).ok());
        self.ask_ethtool(&mut command).then_some(())?;
        // A negative number: none.
        let clock = number(&command, TS_CLOCK).filter(|clock| *clock <= i32::MAX as u32)?;
        let is_known = self.driver().is_some_and(|driver| driver != SIMULATED_DEVICES);
        let filters = number(&command, TS_RECEIVE_FILTERS)?;
        is_known.then_some(TimeStamping { clock, stamps_all_frames: filters & FILTER_ALL != 0 })
    }

    /// The nominal speed in bit/s; `None` where the driver does not know.
    pub fn bits_per_s(&self) -> Option<u64> {
        let mut command = [0u8; 44];
        command[..4].copy_from_slice(&ETHTOOL_GSET.to_ne_bytes());
        let answered = self.ask_ethtool(&mut command);
        let half = |at: usize| u32::from(u16::from_ne_bytes([command[at], command[at + 1]]));
        match half(SPEED_HIGH) << 16 | half(SPEED_LOW) {
            _ if !answered => None,
            0 | 0xffff | u32::MAX => None,
            megabits => Some(u64::from(megabits) * 1_000_000),
        }
    }
}

/// The number of the calling process's network namespace; 0 where it cannot be read.
pub fn network_namespace() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/net").map_or(0, |namespace| namespace.ino() as u32)
}

/// `struct nlmsghdr` and `struct ifinfomsg` of rtnetlink(7).
fn link_request(index: u32) -> [u8; 32] {
    let mut request = [0u8; 32];
    request[..4].copy_from_slice(&32u32.to_ne_bytes());
    request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
    request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request[20..24].copy_from_slice(&index.to_ne_bytes());
    request
}

fn parse_link(message: &[u8]) -> Option<LinkState> {
    let kind = u16::from_ne_bytes(message.get(4..6)?.try_into().ok()?);
    if kind != libc::RTM_NEWLINK {
        return None;
    }
    // `ifi_flags` of `struct ifinfomsg`, which follows the 16 bytes of `struct nlmsghdr`.
    let flags = number::<4>(message, 24)?;
    let promiscuous = flags & libc::IFF_PROMISC as u64 != 0;
    let mut state = LinkState { promiscuous, ..LinkState::default() };
    let mut rest = message.get(32..)?;
    // Attributes: length and type (two bytes each), value, padding to four bytes.
    while let (Some(length), Some(kind)) = (number::<2>(rest, 0), number::<2>(rest, 2)) {
        let length = usize::try_from(length).ok()?;
        let Some(value) = rest.get(4..length) else { break };
        match u16::try_from(kind).unwrap_or_default() {
            libc::IFLA_MTU => state.mtu_bytes = number::<4>(value, 0).and_then(|mtu| u32::try_from(mtu).ok()),
            libc::IFLA_CARRIER => state.carrier = value.first().map(|&carrier| carrier != 0),
            libc::IFLA_CARRIER_CHANGES => state.carrier_changes = number::<4>(value, 0),
            PARENT_DEVICE => state.has_device = true,
            libc::IFLA_ADDRESS => state.mac = value.try_into().ok(),
            libc::IFLA_NUM_RX_QUEUES => {
                state.receive_queues = number::<4>(value, 0).and_then(|queues| u32::try_from(queues).ok());
            }
            libc::IFLA_STATS64 => {
                state.receive_dropped = number::<8>(value, RECEIVE_DROPPED);
                state.transmit_dropped = number::<8>(value, TRANSMIT_DROPPED);
            }
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(state)
}

/// The number of `N` bytes at a place, in the machine's order.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let mut wide = [0u8; size_of::<u64>()];
    wide[..N].copy_from_slice(bytes.get(at..at + N)?);
    Some(u64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers_in_every_namespace() {
        let state = KernelLink::open("lo").expect("lo").state().expect("an answer");
        assert!(state.mtu_bytes.is_some_and(|mtu| mtu >= 1280));
        assert!(state.carrier.is_some() && state.carrier_changes.is_some() && state.transmit_dropped.is_some());
    }

    #[test]
    fn loopback_has_no_speed() {
        assert_eq!(KernelLink::open("lo").expect("lo").bits_per_s(), None);
    }

    #[test]
    fn an_interface_that_does_not_exist_is_an_error() {
        assert!(KernelLink::open("no-such-device").is_err());
    }

    #[test]
    fn a_torn_answer_gives_what_it_holds() {
        let mut message = vec![0u8; 32];
        message[4..6].copy_from_slice(&libc::RTM_NEWLINK.to_ne_bytes());
        message.extend([8, 0, 4, 0, 0xdc, 5, 0, 0]);
        message.extend([200, 0, 35, 0, 1]);
        assert_eq!(parse_link(&message), Some(LinkState { mtu_bytes: Some(1500), ..Default::default() }));
    }
}
