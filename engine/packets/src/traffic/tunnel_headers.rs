//! Writes the headers of tunnels, as `encode.rs` those of Ethernet, IP and transport.

use nicbench_protocol::{Field, IpVersion};

use super::encode::{Encoder, Kind};
use super::header_stack::ComputedHeader;
use crate::addresses::parse_ip;
use crate::error::EngineError;
use crate::wire::{Geneve, Gre, GreKey, Gtp, Header, Mpls, Pppoe, SegmentRouting, SessionContainer, Vxlan};
use crate::wire::{geneve, gre, gtp, mpls, pppoe, segment_routing, vxlan};

/// Hdr Ext Len counts in units of 8 bytes and has one byte (RFC 8754 2).
const MOST_SEGMENTS: usize = 127;
/// TS 38.415 5.5.3.1: from the mobile device to the network.
const UPLINK: u32 = 1;

impl Encoder<'_> {
    /// VXLAN's header (RFC 7348 5).
    pub fn vxlan(&mut self, vni: &Field) -> Result<(), EngineError> {
        let at = self.bytes.len();
        Vxlan::append(&mut self.bytes).set(vxlan::FLAGS, vxlan::VNI_IS_VALID);
        self.encode("vxlan vni", vni, Kind::Number, at, vxlan::VNI)
    }

    /// GENEVE's header (RFC 8926 3.4); `ethertype` is that of what it carries.
    pub fn geneve(&mut self, vni: &Field, ethertype: u16) -> Result<(), EngineError> {
        let at = self.bytes.len();
        Geneve::append(&mut self.bytes).set(geneve::PROTOCOL, ethertype);
        self.encode("geneve vni", vni, Kind::Number, at, geneve::VNI)
    }

    /// GRE's header (RFC 2784 2), with the key of RFC 2890 where one is given.
    pub fn gre(&mut self, key: Option<&Field>, ethertype: u16) -> Result<(), EngineError> {
        let mut header = Gre::append(&mut self.bytes);
        header.set(gre::PROTOCOL, ethertype);
        let Some(key) = key else { return Ok(()) };
        header.set(gre::FLAGS, gre::KEY_PRESENT);
        let at = self.bytes.len();
        GreKey::append(&mut self.bytes);
        self.encode("gre key", key, Kind::Number, at, gre::KEY)
    }

    /// An entry of MPLS's label stack (RFC 3032 2.1); fields: label, traffic class, time to live.
    pub fn mpls(&mut self, [label, traffic_class, hop_limit]: [&Field; 3], is_last: bool) -> Result<(), EngineError> {
        self.end_link();
        let at = self.bytes.len();
        Mpls::append(&mut self.bytes).set(mpls::BOTTOM, is_last.into());
        self.encode("mpls label", label, Kind::Number, at, mpls::LABEL)?;
        self.encode("mpls traffic_class", traffic_class, Kind::Number, at, mpls::TRAFFIC_CLASS)?;
        self.encode("mpls hop_limit", hop_limit, Kind::Number, at, mpls::HOP_LIMIT)
    }

    /// The segment routing header (RFC 8754 2): its list begins with the last segment of the path.
    pub fn segment_routing(&mut self, path: &[String], left: Option<u8>, protocol: u8) -> Result<(), EngineError> {
        if path.is_empty() || path.len() > MOST_SEGMENTS {
            let message = format!("segment_routing has {} segments", path.len());
            return Err(self.refuse(&message, &format!("give 1 to {MOST_SEGMENTS} addresses")));
        }
        let last = (path.len() - 1) as u8;
        let left = left.unwrap_or(last);
        if left > last {
            let message = format!("segment_routing has {} segments, and {left} are left", path.len());
            return Err(self.refuse(&message, &format!("give `segments_left` from 0 to {last}")));
        }
        let mut header = SegmentRouting::append(&mut self.bytes);
        header.set(segment_routing::NEXT_HEADER, protocol);
        header.set(segment_routing::LENGTH, (path.len() * segment_routing::SEGMENT_BYTES / 8) as u8);
        header.set(segment_routing::TYPE, segment_routing::SEGMENT_ROUTING);
        header.set(segment_routing::SEGMENTS_LEFT, left);
        header.set(segment_routing::LAST_ENTRY, last);
        let place = self.place("segment_routing segments");
        for segment in path.iter().rev() {
            self.bytes.extend(parse_ip(segment, IpVersion::V6, &place)?.to_be_bytes());
        }
        Ok(())
    }

    /// GTP-U's header (TS 29.281 5.1), with a PDU session container of the uplink where a QoS flow is given.
    pub fn gtp(&mut self, teid: &Field, qos_flow: Option<&Field>) -> Result<(), EngineError> {
        let at = self.bytes.len();
        let mut header = Gtp::append(&mut self.bytes);
        header.set(gtp::FLAGS, if qos_flow.is_some() { gtp::EXTENDED } else { gtp::PLAIN });
        header.set(gtp::MESSAGE, gtp::PACKET);
        self.parts.push(ComputedHeader::Length { at: gtp::LENGTH.offset(at), from: at + Gtp::BYTES });
        self.encode("gtp teid", teid, Kind::Number, at, gtp::TEID)?;
        let Some(qos_flow) = qos_flow else { return Ok(()) };
        let at = self.bytes.len();
        let mut container = SessionContainer::append(&mut self.bytes);
        container.set(gtp::EXTENSION, gtp::SESSION_CONTAINER);
        container.set(gtp::EXTENSION_LENGTH, 1);
        container.set(gtp::PDU_TYPE, UPLINK);
        self.encode("gtp qos_flow", qos_flow, Kind::Number, at, gtp::QOS_FLOW)
    }

    /// PPPoE's header with PPP's protocol (RFC 2516 4).
    pub fn pppoe(&mut self, session: &Field, carries_v6: bool) -> Result<(), EngineError> {
        self.end_link();
        let at = self.bytes.len();
        let mut header = Pppoe::append(&mut self.bytes);
        header.set(pppoe::VERSION_AND_TYPE, pppoe::VERSION_1_TYPE_1);
        let (v4, v6) = (pppoe::ppp_protocol::IPV4, pppoe::ppp_protocol::IPV6);
        header.set(pppoe::PROTOCOL, if carries_v6 { v6 } else { v4 });
        let from = at + pppoe::BYTES_BEFORE_COUNTED;
        self.parts.push(ComputedHeader::Length { at: pppoe::LENGTH.offset(at), from });
        self.encode("pppoe session", session, Kind::Number, at, pppoe::SESSION)
    }
}
