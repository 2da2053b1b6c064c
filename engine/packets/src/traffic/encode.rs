//! Writes one header after another, and notes which of their fields differ between flows.

use nicbench_protocol::{Field, First, IpVersion};

use super::header_stack::ComputedHeader;
use super::varied_field::{Order, Values, VariedField};
use crate::addresses::{parse_ip, parse_mac};
use crate::error::{EngineError, ErrorKind};
use crate::signature::scramble;
use crate::wire::headers::Ip;
use crate::wire::{Ethernet, Header, Ipv4, Ipv6, Named, Span, Tcp, Udp, Vlan};
use crate::wire::{ethernet, ipv4, ipv6, tcp, udp, vlan};
use crate::wire::{read_number, write_number};

/// The kind of value that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Number,
    Mac,
    Ipv4,
    Ipv6,
}

/// Encodes layers to header bytes, one after the other.
pub struct Encoder<'a> {
    stream: &'a str,
    pub bytes: Vec<u8>,
    pub parts: Vec<ComputedHeader>,
    pub places: Vec<VariedField>,
    /// End of the outermost Ethernet header and its tags.
    pub link_bytes: usize,
    /// Where the last IP header is.
    ip: Ip,
    link_is_open: bool,
    flows_per_value: u64,
}

impl<'a> Encoder<'a> {
    pub fn new(stream: &'a str) -> Self {
        Self {
            stream,
            bytes: Vec::new(),
            parts: Vec::new(),
            places: Vec::new(),
            link_bytes: 0,
            ip: Ip { at: 0, is_v6: false, protocol: 0 },
            link_is_open: true,
            flows_per_value: 1,
        }
    }

    /// Ethernet's header (IEEE 802.3 3.2); `ethertype` is that of the next layer.
    pub fn ethernet(&mut self, source: &Field, destination: &Field, ethertype: u16) -> Result<(), EngineError> {
        let at = self.bytes.len();
        Ethernet::append(&mut self.bytes).set(ethernet::TYPE, ethertype);
        self.encode("ethernet destination", destination, Kind::Mac, at, ethernet::DESTINATION)?;
        self.encode("ethernet source", source, Kind::Mac, at, ethernet::SOURCE)?;
        self.extend_link();
        Ok(())
    }

    /// IEEE 802.1Q 9.6. `tpid` is the tag's own type, which the layer before it holds; `ethertype` that of the next
    /// layer.
    pub fn vlan(&mut self, tpid: u16, id: &Field, priority: &Field, ethertype: u16) -> Result<(), EngineError> {
        if !vlan::is_tag(tpid) {
            let message = format!("vlan tpid is {tpid:#06x}");
            return Err(self.refuse(&message, "use 0x8100 (33024), 0x88a8 (34984) or 0x9100 (37120)"));
        }
        let at = self.bytes.len();
        Vlan::append(&mut self.bytes).set(vlan::TYPE, ethertype);
        self.encode("vlan id", id, Kind::Number, at, vlan::ID)?;
        self.encode("vlan priority", priority, Kind::Number, at, vlan::PRIORITY)?;
        self.extend_link();
        Ok(())
    }

    /// IPv4's header (RFC 791 3.1); fields: type of service, identification, time to live.
    pub fn ipv4(&mut self, addresses: [&Field; 2], fields: [&Field; 3], protocol: u8) -> Result<(), EngineError> {
        let at = self.begin_ip(false, protocol);
        Ipv4::append(&mut self.bytes).begin(protocol);
        let ([source, destination], [traffic_class, identification, hop_limit]) = (addresses, fields);
        self.encode("ipv4 source", source, Kind::Ipv4, at, ipv4::SOURCE)?;
        self.encode("ipv4 destination", destination, Kind::Ipv4, at, ipv4::DESTINATION)?;
        self.encode("ipv4 traffic_class", traffic_class, Kind::Number, at, ipv4::TRAFFIC_CLASS)?;
        self.encode("ipv4 identification", identification, Kind::Number, at, ipv4::IDENTIFICATION)?;
        self.encode("ipv4 hop_limit", hop_limit, Kind::Number, at, ipv4::HOP_LIMIT)?;
        self.parts.push(ComputedHeader::Ipv4 { at });
        Ok(())
    }

    /// IPv6's header (RFC 8200 3); fields: traffic class, flow label, hop limit.
    pub fn ipv6(&mut self, addresses: [&Field; 2], fields: [&Field; 3], protocol: u8) -> Result<(), EngineError> {
        let at = self.begin_ip(true, protocol);
        Ipv6::append(&mut self.bytes).begin(protocol);
        let ([source, destination], [traffic_class, flow_label, hop_limit]) = (addresses, fields);
        self.encode("ipv6 source", source, Kind::Ipv6, at, ipv6::SOURCE)?;
        self.encode("ipv6 destination", destination, Kind::Ipv6, at, ipv6::DESTINATION)?;
        self.encode("ipv6 traffic_class", traffic_class, Kind::Number, at, ipv6::TRAFFIC_CLASS)?;
        self.encode("ipv6 flow_label", flow_label, Kind::Number, at, ipv6::FLOW_LABEL)?;
        self.encode("ipv6 hop_limit", hop_limit, Kind::Number, at, ipv6::HOP_LIMIT)?;
        self.parts.push(ComputedHeader::Ipv6 { at });
        Ok(())
    }

    /// UDP's header (RFC 768). What carries a tunnel goes without checksum (RFC 7348 5, RFC 8926 3.3, RFC 6935 5).
    pub fn udp(&mut self, source: &Field, destination: &Field, sum: bool, carries: bool) -> Result<(), EngineError> {
        let (at, ip) = (self.bytes.len(), self.ip);
        Udp::append(&mut self.bytes);
        self.encode("udp source", source, Kind::Number, at, udp::SOURCE_PORT)?;
        self.encode("udp destination", destination, Kind::Number, at, udp::DESTINATION_PORT)?;
        self.parts.push(ComputedHeader::Udp { at, ip, checksum: !carries && (sum || ip.is_v6) });
        Ok(())
    }

    /// TCP's header (RFC 9293 3.1), without options; fields: sequence number, acknowledgement number.
    pub fn tcp(&mut self, ports: [&Field; 2], fields: [&Field; 2], flags: u8, window: u16) -> Result<(), EngineError> {
        let (at, ip) = (self.bytes.len(), self.ip);
        let mut header = Tcp::append(&mut self.bytes);
        header.begin();
        header.set(tcp::FLAGS, flags);
        header.set(tcp::WINDOW, window);
        let ([source, destination], [sequence, acknowledgement]) = (ports, fields);
        self.encode("tcp source", source, Kind::Number, at, tcp::SOURCE_PORT)?;
        self.encode("tcp destination", destination, Kind::Number, at, tcp::DESTINATION_PORT)?;
        self.encode("tcp sequence", sequence, Kind::Number, at, tcp::SEQUENCE)?;
        self.encode("tcp acknowledgement", acknowledgement, Kind::Number, at, tcp::ACKNOWLEDGEMENT)?;
        self.parts.push(ComputedHeader::Tcp { at, ip });
        Ok(())
    }

    pub fn raw(&mut self, hex: &str) -> Result<(), EngineError> {
        let digits: Option<Vec<u8>> = hex
            .chars()
            .filter(|character| !character.is_whitespace())
            .map(|character| character.to_digit(16).map(|digit| digit as u8))
            .collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0);
        let digits = digits.ok_or_else(|| self.refuse("raw hex is no row of bytes", "write pairs of digits 0 to f"))?;
        if self.link_is_open && self.link_bytes == 0 {
            // Raw from the first byte on: the two addresses are the router's to change.
            self.link_bytes = ethernet::ADDRESSES.range(0).end;
        }
        self.bytes.extend(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
        Ok(())
    }

    /// An IP header begins here: the outermost Ethernet header with its tags is over. Returns where.
    fn begin_ip(&mut self, is_v6: bool, protocol: u8) -> usize {
        self.end_link();
        self.ip = Ip { at: self.bytes.len(), is_v6, protocol };
        self.ip.at
    }

    /// What follows is no longer of the outermost Ethernet header and its tags.
    pub fn end_link(&mut self) {
        self.link_is_open = false;
    }

    /// The outermost Ethernet header, tags included, reaches to here so far.
    fn extend_link(&mut self) {
        if self.link_is_open {
            self.link_bytes = self.bytes.len();
        }
    }

    /// Writes a field of the header that begins at byte `at`, or notes that it differs between flows.
    pub fn encode<H>(
        &mut self,
        name: &str,
        field: &Field,
        kind: Kind,
        at: usize,
        place: impl Named<H>,
    ) -> Result<(), EngineError> {
        let Span { at: within, bytes, shift, bits } = place.span();
        let bytes = at + within..at + within + bytes;
        let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let values = self.values(name, field, kind)?;
        if values.last() > mask {
            let message = format!("{name} reaches {}, and it has {bits} bits", values.last());
            return Err(self.refuse(&message, &format!("stay at or below {mask}")));
        }
        if values.count > 1 {
            self.places.push(VariedField { bytes, shift, mask, values });
        } else {
            write_number(&mut self.bytes[bytes], shift, mask, values.first);
        }
        Ok(())
    }

    fn values(&mut self, name: &str, field: &Field, kind: Kind) -> Result<Values, EngineError> {
        let in_turn = Order::InTurn { flows_per_value: self.flows_per_value };
        let fixed = |first| Values { first, count: 1, step: 1, order: in_turn };
        let varied = match field {
            Field::Number(number) => return self.number(name, kind, *number).map(fixed),
            Field::Text(text) => return self.text(name, kind, text).map(fixed),
            Field::Varied(varied) => varied,
        };
        if varied.count == 0 {
            return Err(self.refuse(&format!("{name} has a count of 0"), "give 1 or more"));
        }
        let first = match &varied.first {
            First::Number(number) => self.number(name, kind, *number)?,
            First::Text(text) => self.text(name, kind, text)?,
        };
        let order = match varied.seed {
            // Fields with the same seed are not to have values that go together.
            Some(seed) => Order::Drawn { seed: scramble(seed ^ (self.places.len() as u64 + 1)) },
            None if varied.together => {
                if self.places.is_empty() || self.flows_per_value % varied.count != 0 {
                    let message = format!("{name} goes together with a field of as many values, and there is none");
                    return Err(self.refuse(&message, "give the varied field before it the same count, and no seed"));
                }
                Order::InTurn { flows_per_value: self.flows_per_value / varied.count }
            }
            None => {
                self.flows_per_value = self.flows_per_value.saturating_mul(varied.count);
                in_turn
            }
        };
        Ok(Values { first, count: varied.count, step: varied.step, order })
    }

    fn number(&self, name: &str, kind: Kind, number: u64) -> Result<u128, EngineError> {
        match kind {
            Kind::Number => Ok(number.into()),
            _ => self.text(name, kind, &number.to_string()),
        }
    }

    fn text(&self, name: &str, kind: Kind, text: &str) -> Result<u128, EngineError> {
        let place = self.place(name);
        match kind {
            Kind::Number => Err(self.refuse(&format!("{name} is {text:?}"), "write a number")),
            Kind::Mac => parse_mac(text, &place).map(|mac| read_number(&mac)),
            Kind::Ipv4 => parse_ip(text, IpVersion::V4, &place),
            Kind::Ipv6 => parse_ip(text, IpVersion::V6, &place),
        }
    }

    /// How errors name a field.
    pub fn place(&self, name: &str) -> String {
        format!("stream {}: {name}", self.stream)
    }

    pub fn refuse(&self, what: &str, next: &str) -> EngineError {
        EngineError::new(ErrorKind::BadRequest, format!("stream {}: {what}", self.stream), next)
    }
}
