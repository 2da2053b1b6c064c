//! IPv6 (RFC 8200 3).

use super::view::{Bits, Field, Header, View};

/// IPv6's header; extension headers are payload here.
#[derive(Debug)]
pub struct Ipv6;

impl Header for Ipv6 {
    const BYTES: usize = 40;
}

/// RFC 8200 3, "Version".
pub const VERSION: Bits<Ipv6> = Bits::new(0, 1, 4, 4);
/// RFC 8200 3, "Traffic Class".
pub const TRAFFIC_CLASS: Bits<Ipv6> = Bits::new(0, 4, 20, 8);
/// RFC 8200 3, "Flow Label".
pub const FLOW_LABEL: Bits<Ipv6> = Bits::new(0, 4, 0, 20);
/// RFC 8200 3, "Payload Length": without this header.
pub const PAYLOAD_LENGTH: Field<Ipv6, u16> = Field::new(4);
/// RFC 8200 3, "Next Header"; see [`super::ip_protocol`].
pub const NEXT_HEADER: Field<Ipv6, u8> = Field::new(6);
/// RFC 8200 3, "Hop Limit".
pub const HOP_LIMIT: Field<Ipv6, u8> = Field::new(7);
/// RFC 8200 3, "Source Address".
pub const SOURCE: Field<Ipv6, u128> = Field::new(8);
/// RFC 8200 3, "Destination Address".
pub const DESTINATION: Field<Ipv6, u128> = Field::new(24);
/// Source, then destination.
pub const ADDRESSES: Field<Ipv6, [u8; 32]> = Field::new(8);

impl<B: AsMut<[u8]>> View<Ipv6, B> {
    /// Makes a header of zeros one that carries `next_header`.
    pub fn begin(&mut self, next_header: u8) {
        self.set(VERSION, 6);
        self.set(NEXT_HEADER, next_header);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ip_protocol;
    use super::*;

    /// RFC 8200 3: EF, flow label 0x12345, 32 bytes of ICMPv6 from fe80::aa to 2001:2::1.
    const BYTES: [u8; 40] = [
        0x6B, 0x81, 0x23, 0x45, 0, 32, 58, 255, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xAA, 0x20, 1, 0, 2,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    ];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Ipv6::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(VERSION), view.get(TRAFFIC_CLASS), view.get(FLOW_LABEL)), (6, 0xB8, 0x12345));
        assert_eq!((view.get(PAYLOAD_LENGTH), view.get(NEXT_HEADER)), (32, ip_protocol::ICMPV6));
        assert_eq!(view.get(HOP_LIMIT), 255);
        let (source, destination) = (0xFE80 << 112 | 0xAA, 0x2001_0002 << 96 | 1);
        assert_eq!((view.get(SOURCE), view.get(DESTINATION)), (source, destination));
        assert_eq!(view.get(ADDRESSES), BYTES[8..]);
        let mut written = Vec::new();
        let mut header = Ipv6::append(&mut written);
        header.begin(ip_protocol::ICMPV6);
        header.set(TRAFFIC_CLASS, 0xB8);
        header.set(FLOW_LABEL, 0x12345);
        header.set(PAYLOAD_LENGTH, 32);
        header.set(HOP_LIMIT, 255);
        header.set(SOURCE, source);
        header.set(DESTINATION, destination);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..40).for_each(|length| assert!(Ipv6::at(&BYTES[..length], 0).is_none(), "{length}"));
    }
}
