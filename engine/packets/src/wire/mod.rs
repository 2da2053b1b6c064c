//! The headers of network protocols, each written once: named fields, read and written through a view of checked
//! length.
//!
//! `Ipv4::at(frame, offset)` gives a view of the header that begins there, or `None` where the frame is too short; then
//! `view.get(ipv4::SOURCE)` cannot fail. Nothing outside of this folder knows at which byte of a header a field stands.

pub mod arp;
pub mod ethernet;
pub mod geneve;
pub mod gre;
pub mod gtp;
pub mod headers;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod ndp;
pub mod pppoe;
pub mod segment_routing;
pub mod tcp;
pub mod udp;
mod view;
pub mod vlan;
pub mod vxlan;

pub use arp::Arp;
pub use ethernet::Ethernet;
pub use geneve::Geneve;
pub use gre::{Gre, GreKey};
pub use gtp::{Gtp, SessionContainer};
pub use headers::Headers;
pub use icmp::Echo;
pub use ipv4::Ipv4;
pub use ipv6::Ipv6;
pub use mpls::Mpls;
pub use pppoe::Pppoe;
pub use segment_routing::SegmentRouting;
pub use tcp::Tcp;
pub use udp::Udp;
pub use view::{Header, Named, Span, View, is_u16_at, read_number, write_number, write_u16};
pub use vlan::Vlan;
pub use vxlan::Vxlan;

/// EtherTypes (IANA, "IEEE 802 Numbers").
pub mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const ARP: u16 = 0x0806;
    pub const IPV6: u16 = 0x86DD;
    /// Ethernet carried by another protocol (RFC 1701 names it Transparent Ethernet Bridging).
    pub const BRIDGED_ETHERNET: u16 = 0x6558;
    /// For local experiments (IEEE 802, 9.2.4).
    pub const EXPERIMENTAL: u16 = 0x88B5;
    /// A tag of IEEE 802.1Q.
    pub const VLAN: u16 = 0x8100;
    /// The outer of two tags, IEEE 802.1ad.
    pub const PROVIDER_VLAN: u16 = 0x88A8;
    /// What was used for the outer tag before IEEE 802.1ad.
    pub const OLD_PROVIDER_VLAN: u16 = 0x9100;
    /// MPLS with a label that the downstream neighbour assigned (RFC 5332).
    pub const MPLS: u16 = 0x8847;
    /// The session stage of PPPoE (RFC 2516 4).
    pub const PPPOE_SESSION: u16 = 0x8864;
}

/// Numbers of the protocols that IP carries (IANA, "Protocol Numbers").
pub mod ip_protocol {
    pub const ICMP: u8 = 1;
    /// IPv4 within IP (RFC 2003).
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    /// IPv6 within IP (RFC 2473).
    pub const IPV6: u8 = 41;
    /// The routing header of IPv6.
    pub const ROUTING: u8 = 43;
    pub const GRE: u8 = 47;
    pub const ICMPV6: u8 = 58;
    /// Ethernet within SRv6 (RFC 8986 10.1).
    pub const ETHERNET: u8 = 143;
    /// For experiments (RFC 3692 2.1).
    pub const EXPERIMENTAL: u8 = 253;
}
