//! IPv4 (RFC 791 3.1).

use super::view::{Bits, Field, Header, View};

/// IPv4's header without options.
#[derive(Debug)]
pub struct Ipv4;

impl Header for Ipv4 {
    const BYTES: usize = 20;
}

/// RFC 791 3.1, "Version".
pub const VERSION: Bits<Ipv4> = Bits::new(0, 1, 4, 4);
/// RFC 791 3.1, "IHL": the header's length in words of 4 bytes.
pub const WORDS: Bits<Ipv4> = Bits::new(0, 1, 0, 4);
/// RFC 791 3.1, "Type of Service"; today DSCP and ECN (RFC 2474 3, RFC 3168 5).
pub const TRAFFIC_CLASS: Field<Ipv4, u8> = Field::new(1);
/// RFC 791 3.1, "Total Length": header and payload.
pub const TOTAL_LENGTH: Field<Ipv4, u16> = Field::new(2);
/// RFC 791 3.1, "Identification".
pub const IDENTIFICATION: Field<Ipv4, u16> = Field::new(4);
/// RFC 791 3.1, "Flags": DF.
pub const DO_NOT_FRAGMENT: Bits<Ipv4> = Bits::new(6, 2, 14, 1);
/// RFC 791 3.1, "Flags": MF.
pub const MORE_FRAGMENTS: Bits<Ipv4> = Bits::new(6, 2, 13, 1);
/// RFC 791 3.1, "Fragment Offset", in units of 8 bytes.
pub const FRAGMENT_OFFSET: Bits<Ipv4> = Bits::new(6, 2, 0, 13);
/// RFC 791 3.1, "Time to Live".
pub const HOP_LIMIT: Field<Ipv4, u8> = Field::new(8);
/// RFC 791 3.1, "Protocol"; see [`super::ip_protocol`].
pub const PROTOCOL: Field<Ipv4, u8> = Field::new(9);
/// RFC 791 3.1, "Header Checksum".
pub const CHECKSUM: Field<Ipv4, u16> = Field::new(10);
/// RFC 791 3.1, "Source Address".
pub const SOURCE: Field<Ipv4, u32> = Field::new(12);
/// RFC 791 3.1, "Destination Address".
pub const DESTINATION: Field<Ipv4, u32> = Field::new(16);
/// Source, then destination.
pub const ADDRESSES: Field<Ipv4, [u8; 8]> = Field::new(12);

const WORDS_WITHOUT_OPTIONS: u32 = (Ipv4::BYTES / 4) as u32;

impl<B: AsRef<[u8]>> View<Ipv4, B> {
    /// The length of the header with its options, as it says itself; below 20 the header is broken.
    #[inline(always)]
    pub fn header_bytes(&self) -> usize {
        self.get(WORDS) as usize * 4
    }

    /// Whether it is a header of version 4 with the length of one without options.
    #[inline(always)]
    pub fn is_without_options(&self) -> bool {
        (self.get(VERSION), self.get(WORDS)) == (4, WORDS_WITHOUT_OPTIONS)
    }
}

impl<B: AsMut<[u8]>> View<Ipv4, B> {
    /// Makes a header of zeros one without options that carries `protocol`. It may not be fragmented: a fragment would
    /// be neither ours nor lost.
    pub fn begin(&mut self, protocol: u8) {
        self.set(VERSION, 4);
        self.set(WORDS, WORDS_WITHOUT_OPTIONS);
        self.set(DO_NOT_FRAGMENT, 1);
        self.set(PROTOCOL, protocol);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ip_protocol;
    use super::*;

    /// RFC 791 3.1: CS5, 1234 bytes, not to be fragmented, UDP from 198.18.0.1 to 198.19.0.2.
    const BYTES: [u8; 20] =
        [0x45, 0xA0, 0x04, 0xD2, 0xBE, 0xEF, 0x40, 0x00, 64, 17, 0x12, 0x34, 198, 18, 0, 1, 198, 19, 0, 2];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Ipv4::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(VERSION), view.get(WORDS), view.header_bytes()), (4, 5, 20));
        assert!(view.is_without_options());
        assert_eq!((view.get(TRAFFIC_CLASS), view.get(TOTAL_LENGTH), view.get(IDENTIFICATION)), (0xA0, 1234, 0xBEEF));
        assert_eq!((view.get(DO_NOT_FRAGMENT), view.get(FRAGMENT_OFFSET)), (1, 0));
        assert_eq!((view.get(HOP_LIMIT), view.get(PROTOCOL), view.get(CHECKSUM)), (64, ip_protocol::UDP, 0x1234));
        assert_eq!((view.get(SOURCE), view.get(DESTINATION)), (0xC612_0001, 0xC613_0002));
        assert_eq!(view.get(ADDRESSES), [198, 18, 0, 1, 198, 19, 0, 2]);
        let mut written = Vec::new();
        let mut header = Ipv4::append(&mut written);
        header.begin(ip_protocol::UDP);
        header.set(TRAFFIC_CLASS, 0xA0);
        header.set(TOTAL_LENGTH, 1234);
        header.set(IDENTIFICATION, 0xBEEF);
        header.set(HOP_LIMIT, 64);
        header.set(CHECKSUM, 0x1234);
        header.set(SOURCE, 0xC612_0001);
        header.set(DESTINATION, 0xC613_0002);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let mut bytes = BYTES;
        (bytes[6], bytes[7]) = (0x3F, 0xFF);
        let view = Ipv4::at(&bytes, 0).unwrap();
        assert_eq!((view.get(DO_NOT_FRAGMENT), view.get(FRAGMENT_OFFSET)), (0, 0x1FFF));
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..20).for_each(|length| assert!(Ipv4::at(&BYTES[..length], 0).is_none(), "{length}"));
    }
}
