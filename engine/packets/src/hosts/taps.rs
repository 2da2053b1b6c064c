//! Hosts whose frames the kernel of a namespace makes and reads: each has an interface there, and what is meant for the
//! host is passed to it, without tags. Which programs listen there (routing daemons) is not known here.
//!
//! Flows come first: few frames are passed in a second, in each direction, and no more is kept than one frame.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nicbench_protocol::HostCounts;

use super::{Host, Vlans};
use crate::port::{Port, send_one};
use crate::sys::tap_device::TapDevice;
use crate::traffic::allowance::Allowance;
use crate::wire::ethernet::{self, Mac};
use crate::wire::{Ethernet, Header, Headers, Ipv4, Ipv6, ethertype, ipv4, ipv6};

/// IP packets for addresses of hosts, and frames that hosts send, in a second and at once.
const TALK: Allowance = Allowance::new(20_000.0, 4096.0);
/// All else that is passed, in a second and at once: a storm of it leaves connections alone.
const NOISE: Allowance = Allowance::new(2_000.0, 512.0);
/// Frames that go out in one turn.
const SENT_AT_ONCE: usize = 16;
/// Between two looks at an interface that had nothing: a look is a system call.
const LOOK_NS: u64 = 20_000;
/// What is longer comes from no interface of a network.
const LONGEST_FRAME: usize = 9216;
/// Ethernet's shortest frame without FCS: the port does not pad.
const SHORTEST_FRAME: usize = (ethernet::SHORTEST_FRAME_BYTES - ethernet::FCS_BYTES) as usize;
/// Where tags are.
const BEHIND_ADDRESSES: usize = 12;

/// An interface as the kernel of a namespace sees it.
pub trait Interface: std::fmt::Debug {
    /// Has the frame arrive there; whether the kernel took it.
    fn write(&mut self, frame: &[u8]) -> bool;

    /// Reads the next frame that the kernel sent; `None` if there is none.
    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Option<&'a [u8]>;
}

impl Interface for TapDevice {
    fn write(&mut self, frame: &[u8]) -> bool {
        TapDevice::write(self, frame)
    }

    fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
        TapDevice::read(self, buffer)
    }
}

#[derive(Debug)]
struct Tap {
    mac: Mac,
    vlans: Vlans,
    /// The tags of what is sent, with their types.
    tags: Vec<u8>,
    addresses: Vec<IpAddr>,
    device: Box<dyn Interface>,
}

/// The taps of one port.
#[derive(Debug)]
pub struct Taps {
    taps: Vec<Tap>,
    /// At which of them is looked first.
    first: usize,
    look_ns: u64,
    talk: Allowance,
    noise: Allowance,
    sends: Allowance,
    /// A frame that the port refused.
    refused: Option<Vec<u8>>,
    buffer: Box<[u8]>,
}

impl Default for Taps {
    fn default() -> Self {
        Self {
            taps: Vec::new(),
            first: 0,
            look_ns: 0,
            talk: TALK,
            noise: NOISE,
            sends: TALK,
            refused: None,
            buffer: vec![0; LONGEST_FRAME].into(),
        }
    }
}

impl Taps {
    /// Passes frames of a host from now on.
    pub fn add(&mut self, host: &Host, device: Box<dyn Interface>) {
        let tags = host.link[BEHIND_ADDRESSES..ethernet::type_before(host.link.len()).start].to_vec();
        let addresses = host.addresses.clone();
        self.taps.push(Tap { mac: host.mac, vlans: host.vlans, tags, addresses, device });
    }

    /// Passes a frame of no flow to the hosts that it is for; whether there is any.
    pub fn receive(&mut self, frame: &[u8], now_ns: u64, counts: &mut HostCounts) -> bool {
        let Some(link) = Ethernet::at(frame, 0).filter(|_| !self.taps.is_empty()) else { return false };
        let (destination, source) = (link.get(ethernet::DESTINATION), link.get(ethernet::SOURCE));
        let is_group = destination[0] & 1 != 0;
        if !is_group && !self.taps.iter().any(|tap| tap.mac == destination) {
            return false;
        }
        let Some((headers, vlans)) =
            Headers::find(frame, 0).and_then(|headers| Some((headers, Vlans::of(frame, headers.network)?)))
        else {
            return false;
        };
        let packet = destination_of(frame, &headers);
        let is_talk = !is_group && packet.is_some();
        let mut is_ours = false;
        for tap in &mut self.taps {
            let is_for = (is_group || tap.mac == destination) && tap.mac != source && tap.vlans == vlans;
            if !is_for || !packet.is_none_or(|to| tap.listens_to(to)) {
                continue;
            }
            is_ours = true;
            let allowance = if is_talk { &mut self.talk } else { &mut self.noise };
            let is_passed = allowance.take(now_ns) && tap.pass(frame, headers.network);
            counts.dropped += u64::from(!is_passed);
        }
        is_ours
    }

    /// Sends what hosts have to say; returns how many frames went.
    pub fn send(&mut self, port: &mut dyn Port, now_ns: u64) -> usize {
        if self.taps.is_empty() || (now_ns < self.look_ns && self.refused.is_none()) {
            return 0;
        }
        let mut sent = 0;
        let mut silent = 0;
        while sent < SENT_AT_ONCE && silent < self.taps.len() {
            let frame = self.refused.take().or_else(|| self.read(now_ns));
            let Some(frame) = frame else {
                silent += 1;
                self.first = (self.first + 1) % self.taps.len();
                continue;
            };
            if !send_one(port, &frame) {
                self.refused = Some(frame);
                break;
            }
            sent += 1;
        }
        // The more of them, the more a look at all of them costs.
        self.look_ns = now_ns + if sent > 0 { 0 } else { LOOK_NS * self.taps.len() as u64 };
        sent
    }

    /// The next frame of the first of them, with its tags.
    fn read(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let tap = &mut self.taps[self.first];
        // What may not be sent yet stays with the kernel, whose queue is bounded.
        if self.sends.next_ns() > now_ns + 1 {
            return None;
        }
        let frame = tap.device.read(&mut self.buffer)?;
        self.sends.take(now_ns);
        let (addresses, rest) = frame.split_at_checked(BEHIND_ADDRESSES)?;
        let mut bytes = [addresses, &tap.tags, rest].concat();
        bytes.resize(bytes.len().max(SHORTEST_FRAME), 0);
        Some(bytes)
    }
}

impl Tap {
    fn listens_to(&self, address: IpAddr) -> bool {
        let is_local = match address {
            IpAddr::V4(address) => address.is_multicast() || address == Ipv4Addr::BROADCAST,
            IpAddr::V6(address) => address.is_multicast() || is_link_local(address),
        };
        is_local || self.addresses.contains(&address)
    }

    fn pass(&mut self, frame: &[u8], network: usize) -> bool {
        let behind_tags = ethernet::type_before(network).start;
        if behind_tags == BEHIND_ADDRESSES {
            return self.device.write(frame);
        }
        self.device.write(&[&frame[..BEHIND_ADDRESSES], &frame[behind_tags..]].concat())
    }
}

/// Where IP says that a frame goes; `None` where it carries something else.
fn destination_of(frame: &[u8], headers: &Headers) -> Option<IpAddr> {
    match headers.ethertype {
        ethertype::IPV4 => Some(Ipv4Addr::from(Ipv4::at(frame, headers.network)?.get(ipv4::DESTINATION)).into()),
        ethertype::IPV6 => Some(Ipv6Addr::from(Ipv6::at(frame, headers.network)?.get(ipv6::DESTINATION)).into()),
        _ => None,
    }
}

/// RFC 4291 2.5.6.
fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xFFC0 == 0xFE80
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;
    use std::rc::Rc;

    use nicbench_protocol::HostRequest;
    use serde_json::json;

    use super::*;

    /// Frames that arrived at the kernel, and those that it is to send.
    #[derive(Debug, Default)]
    struct Kernel {
        heard: Vec<Vec<u8>>,
        says: VecDeque<Vec<u8>>,
    }

    impl Interface for Rc<RefCell<Kernel>> {
        fn write(&mut self, frame: &[u8]) -> bool {
            self.borrow_mut().heard.push(frame.to_vec());
            true
        }

        fn read<'a>(&mut self, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
            let frame = self.borrow_mut().says.pop_front()?;
            buffer[..frame.len()].copy_from_slice(&frame);
            Some(&buffer[..frame.len()])
        }
    }

    /// The router 02:00:00:00:00:01 of VLAN 7, with 198.18.0.2 and 2001:2::2.
    fn router() -> (Taps, Rc<RefCell<Kernel>>) {
        let request: HostRequest = serde_json::from_value(json!({"port": 0, "mac": "02:00:00:00:00:01",
            "tags": [{"tag_type": 0x8100, "priority": 5, "id": 7}],
            "addresses": [{"address": "198.18.0.2"}, {"address": "2001:2::2"}]}))
        .unwrap();
        let kernel = Rc::default();
        let mut taps = Taps::default();
        taps.add(&Host::of(0, &request).unwrap(), Box::new(Rc::clone(&kernel)));
        (taps, kernel)
    }

    const OWN: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 0xFE];
    const TAG: [u8; 4] = [0x81, 0, 0, 7];
    const TCP: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];

    fn frame(to: [u8; 6], tag: &[u8], kind: u16, rest: &[u8]) -> Vec<u8> {
        [&to[..], &OTHER, tag, &kind.to_be_bytes(), rest].concat()
    }

    fn receive(taps: &mut Taps, frame: &[u8], now_ns: u64) -> (bool, u64) {
        let mut counts = HostCounts::default();
        (taps.receive(frame, now_ns, &mut counts), counts.dropped)
    }

    #[test]
    fn the_kernel_hears_what_is_for_its_host_without_tags() {
        let (mut taps, kernel) = router();
        let arp = [0; 28];
        for heard in [frame(OWN, &TAG, 0x0800, &TCP), frame([0xFF; 6], &TAG, 0x0806, &arp)] {
            assert_eq!(receive(&mut taps, &heard, 0), (true, 0));
            assert_eq!(kernel.borrow_mut().heard.pop().unwrap(), [&heard[..12], &heard[16..]].concat());
        }
    }

    #[test]
    fn the_kernel_hears_nothing_else() {
        let (mut taps, kernel) = router();
        let to_a_route = [&TCP[..16], &[100, 64, 0, 1]].concat();
        let own_again = [&[0xFF; 6][..], &OWN, &TAG, &[8, 6]].concat();
        for unheard in [
            frame(OTHER, &TAG, 0x0800, &TCP),
            frame(OWN, &TAG, 0x0800, &to_a_route),
            frame(OWN, &[0x81, 0, 0, 8], 0x0800, &TCP),
            frame(OWN, &[], 0x0800, &TCP),
            own_again,
            OWN.to_vec(),
        ] {
            assert_eq!(receive(&mut taps, &unheard, 0), (false, 0), "{unheard:x?}");
        }
        assert!(kernel.borrow().heard.is_empty());
    }

    #[test]
    fn a_storm_is_bounded_and_leaves_connections_alone() {
        let (mut taps, kernel) = router();
        let storm = frame([0xFF; 6], &TAG, 0x0806, &[0; 28]);
        let dropped: u64 = (0..1_000_000).map(|turn| receive(&mut taps, &storm, turn * 1000).1).sum();
        let heard = kernel.borrow().heard.len() as u64;
        assert!(heard <= 2513 && heard + dropped == 1_000_000, "{heard}");
        assert_eq!(receive(&mut taps, &frame(OWN, &TAG, 0x0800, &TCP), 1_000_000_000), (true, 0));
    }

    #[test]
    fn what_the_kernel_says_has_the_hosts_tags_and_is_bounded() {
        let (mut taps, kernel) = router();
        kernel.borrow_mut().says = (0..10_000).map(|_| frame(OTHER, &[], 0x0800, &TCP)).collect();
        let said = taps.read(0).unwrap();
        assert_eq!(said[..18], frame(OTHER, &[0x81, 0, 0xA0, 7], 0x0800, &[])[..]);
        assert_eq!((said.len(), &said[18..38]), (60, &TCP[..]));
        let at_once = std::iter::from_fn(|| taps.read(0)).count();
        assert!(at_once < 4100, "{at_once}");
        assert!(kernel.borrow().says.len() > 5000 && taps.read(1_000_000).is_some());
    }
}
