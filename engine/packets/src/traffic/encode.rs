//! Writes one header after another, and notes which of their fields differ between flows.

use nicbench_protocol::{Field, First, IpVersion};

use super::field::{Order, Place, Values, put};
use super::stack::Part;
use crate::addresses::{parse_ip, parse_mac};
use crate::error::{EngineError, ErrorKind};
use crate::signature::scramble;

/// What a field's text or number must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Mac,
    Ipv4,
    Ipv6,
}

/// The header bytes so far.
pub struct Encoder<'a> {
    stream: &'a str,
    pub bytes: Vec<u8>,
    pub parts: Vec<Part>,
    pub places: Vec<Place>,
    /// End of the outermost Ethernet header and its tags.
    pub link_bytes: usize,
    /// Of the last IP header: where its addresses are, and its version.
    addresses: (usize, bool),
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
            addresses: (0, false),
            link_is_open: true,
            flows_per_value: 1,
        }
    }

    pub fn word(&mut self, word: u16) {
        self.bytes.extend(word.to_be_bytes());
    }

    pub fn mac(&mut self, name: &str, field: &Field) -> Result<(), EngineError> {
        self.whole(&format!("ethernet {name}"), field, Kind::Mac, 6)
    }

    /// The outermost Ethernet header, tags included, ends here so far.
    pub fn end_of_link(&mut self) {
        if self.link_is_open {
            self.link_bytes = self.bytes.len();
        }
    }

    /// IEEE 802.1Q 9.6: priority, drop eligibility, identifier. The tag's type was written by the layer before it.
    pub fn tag(&mut self, tpid: u16, id: &Field, priority: &Field) -> Result<(), EngineError> {
        if ![0x8100, 0x88A8, 0x9100].contains(&tpid) {
            let message = format!("vlan tpid is {tpid:#06x}");
            return Err(self.refuse(&message, "use 0x8100 (33024), 0x88a8 (34984) or 0x9100 (37120)"));
        }
        let at = self.bytes.len();
        self.word(0);
        self.bits("vlan id", id, (at, 2), 0, 12)?;
        self.bits("vlan priority", priority, (at, 2), 13, 3)
    }

    /// RFC 791 3.1; fields: type of service, identification, time to live.
    pub fn ipv4(&mut self, addresses: [&Field; 2], fields: [&Field; 3], protocol: u8) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.link_is_open = false;
        // Do not fragment: a fragment would be neither ours nor lost.
        self.bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 0, protocol, 0, 0]);
        self.whole("ipv4 source", addresses[0], Kind::Ipv4, 4)?;
        self.whole("ipv4 destination", addresses[1], Kind::Ipv4, 4)?;
        self.bits("ipv4 traffic_class", fields[0], (at + 1, 1), 0, 8)?;
        self.bits("ipv4 identification", fields[1], (at + 4, 2), 0, 16)?;
        self.bits("ipv4 hop_limit", fields[2], (at + 8, 1), 0, 8)?;
        self.addresses = (at + 12, false);
        self.parts.push(Part::Ipv4 { at });
        Ok(())
    }

    /// RFC 8200 3; fields: traffic class, flow label, hop limit.
    pub fn ipv6(&mut self, addresses: [&Field; 2], fields: [&Field; 3], protocol: u8) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.link_is_open = false;
        self.bytes.extend([0x60, 0, 0, 0, 0, 0, protocol, 0]);
        self.whole("ipv6 source", addresses[0], Kind::Ipv6, 16)?;
        self.whole("ipv6 destination", addresses[1], Kind::Ipv6, 16)?;
        self.bits("ipv6 traffic_class", fields[0], (at, 4), 20, 8)?;
        self.bits("ipv6 flow_label", fields[1], (at, 4), 0, 20)?;
        self.bits("ipv6 hop_limit", fields[2], (at + 7, 1), 0, 8)?;
        self.addresses = (at + 8, true);
        self.parts.push(Part::Ipv6 { at });
        Ok(())
    }

    /// RFC 768. What carries VXLAN goes without checksum (RFC 7348 5, RFC 6935 5).
    pub fn udp(&mut self, source: &Field, destination: &Field, sum: bool, carries: bool) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.whole("udp source", source, Kind::Number, 2)?;
        self.whole("udp destination", destination, Kind::Number, 2)?;
        self.bytes.extend([0; 4]);
        let (addresses_at, is_v6) = self.addresses;
        self.parts.push(Part::Udp { at, addresses_at, is_v6, checksum: !carries && (sum || is_v6) });
        Ok(())
    }

    /// RFC 9293 3.1, without options; fields: sequence number, acknowledgement number.
    pub fn tcp(&mut self, ports: [&Field; 2], fields: [&Field; 2], flags: u8, window: u16) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.whole("tcp source", ports[0], Kind::Number, 2)?;
        self.whole("tcp destination", ports[1], Kind::Number, 2)?;
        self.whole("tcp sequence", fields[0], Kind::Number, 4)?;
        self.whole("tcp acknowledgement", fields[1], Kind::Number, 4)?;
        self.bytes.extend([0x50, flags]);
        self.word(window);
        self.bytes.extend([0; 4]);
        let (addresses_at, is_v6) = self.addresses;
        self.parts.push(Part::Tcp { at, addresses_at, is_v6 });
        Ok(())
    }

    /// RFC 7348 5: the flag I says that the identifier is valid.
    pub fn vxlan(&mut self, vni: &Field) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.bytes.extend([0x08, 0, 0, 0, 0, 0, 0, 0]);
        self.bits("vxlan vni", vni, (at + 4, 3), 0, 24)
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
            self.link_bytes = 12;
        }
        self.bytes.extend(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]));
        Ok(())
    }

    /// A field of whole bytes at the end of what is written.
    fn whole(&mut self, name: &str, field: &Field, kind: Kind, bytes: usize) -> Result<(), EngineError> {
        let at = self.bytes.len();
        self.bytes.resize(at + bytes, 0);
        self.place(name, field, kind, (at, bytes), 0, 8 * bytes as u32)
    }

    /// A field of some bits in bytes that are written already.
    fn bits(
        &mut self,
        name: &str,
        field: &Field,
        at: (usize, usize),
        shift: u32,
        bits: u32,
    ) -> Result<(), EngineError> {
        self.place(name, field, Kind::Number, at, shift, bits)
    }

    fn place(
        &mut self,
        name: &str,
        field: &Field,
        kind: Kind,
        (at, bytes): (usize, usize),
        shift: u32,
        bits: u32,
    ) -> Result<(), EngineError> {
        let mask = if bits == 128 { u128::MAX } else { (1 << bits) - 1 };
        let values = self.values(name, field, kind)?;
        if values.last() > mask {
            let message = format!("{name} reaches {}, and it has {bits} bits", values.last());
            return Err(self.refuse(&message, &format!("stay at or below {mask}")));
        }
        if values.count > 1 {
            self.places.push(Place { bytes: at..at + bytes, shift, mask, values });
        } else {
            put(&mut self.bytes[at..at + bytes], shift, mask, values.first);
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
        let place = format!("stream {}: {name}", self.stream);
        match kind {
            Kind::Number => Err(self.refuse(&format!("{name} is {text:?}"), "write a number")),
            Kind::Mac => parse_mac(text, &place).map(|mac| super::headers::number(&mac)),
            Kind::Ipv4 => parse_ip(text, IpVersion::V4, &place),
            Kind::Ipv6 => parse_ip(text, IpVersion::V6, &place),
        }
    }

    fn refuse(&self, what: &str, next: &str) -> EngineError {
        EngineError::new(ErrorKind::BadRequest, format!("stream {}: {what}", self.stream), next)
    }
}
