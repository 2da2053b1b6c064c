//! ARP (RFC 826) for Ethernet and IPv4.

use super::ethernet::Mac;
use super::ethertype;
use super::view::{Field, Header, View};

/// A message of ARP with addresses of Ethernet and IPv4.
#[derive(Debug)]
pub struct Arp;

impl Header for Arp {
    const BYTES: usize = 28;
}

/// RFC 826, "Packet format": ar$hrd to ar$pln, which say of which kind and length the addresses are.
pub const ADDRESS_KINDS: Field<Arp, [u8; 6]> = Field::new(0);
/// ar$op.
pub const OPERATION: Field<Arp, u16> = Field::new(6);
/// ar$sha.
pub const SENDER_MAC: Field<Arp, Mac> = Field::new(8);
/// ar$spa.
pub const SENDER_IP: Field<Arp, [u8; 4]> = Field::new(14);
/// ar$tha.
pub const TARGET_MAC: Field<Arp, Mac> = Field::new(18);
/// ar$tpa.
pub const TARGET_IP: Field<Arp, [u8; 4]> = Field::new(24);

/// ares_op$REQUEST.
pub const REQUEST: u16 = 1;
/// ares_op$REPLY.
pub const REPLY: u16 = 2;

/// Ethernet and IPv4, of 6 and 4 bytes.
const ETHERNET_AND_IPV4: [u8; 6] = {
    let [high, low] = ethertype::IPV4.to_be_bytes();
    [0, 1, high, low, 6, 4]
};

impl<B: AsRef<[u8]>> View<Arp, B> {
    /// Whether it asks for the MAC address of an IPv4 address.
    pub fn is_request(&self) -> bool {
        self.get(ADDRESS_KINDS) == ETHERNET_AND_IPV4 && self.get(OPERATION) == REQUEST
    }

    /// Whether it tells the MAC address of an IPv4 address.
    pub fn is_reply(&self) -> bool {
        self.get(ADDRESS_KINDS) == ETHERNET_AND_IPV4 && self.get(OPERATION) == REPLY
    }
}

impl<B: AsMut<[u8]>> View<Arp, B> {
    /// Says of which kind the addresses are, and what the message is for.
    pub fn begin(&mut self, operation: u16) {
        self.set(ADDRESS_KINDS, ETHERNET_AND_IPV4);
        self.set(OPERATION, operation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request as Linux sends it: 02:00:00:00:00:aa at 198.18.0.1 asks for 198.18.0.2.
    const BYTES: [u8; 28] =
        [0, 1, 0x08, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0xAA, 198, 18, 0, 1, 0, 0, 0, 0, 0, 0, 198, 18, 0, 2];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Arp::at(&BYTES, 0).unwrap();
        assert!(view.is_request());
        assert_eq!((view.get(SENDER_MAC), view.get(SENDER_IP)), ([2, 0, 0, 0, 0, 0xAA], [198, 18, 0, 1]));
        assert_eq!((view.get(TARGET_MAC), view.get(TARGET_IP)), ([0; 6], [198, 18, 0, 2]));
        let mut written = Vec::new();
        let mut message = Arp::append(&mut written);
        message.begin(REQUEST);
        message.set(SENDER_MAC, [2, 0, 0, 0, 0, 0xAA]);
        message.set(SENDER_IP, [198, 18, 0, 1]);
        message.set(TARGET_MAC, [0; 6]);
        message.set(TARGET_IP, [198, 18, 0, 2]);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_message_cut_short_is_none() {
        (0..28).for_each(|length| assert!(Arp::at(&BYTES[..length], 0).is_none(), "{length}"));
    }

    #[test]
    fn a_reply_or_another_kind_of_address_is_no_request() {
        for (byte, value) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 2)] {
            let mut other = BYTES;
            other[byte] = value;
            let other = Arp::at(&other, 0).unwrap();
            assert_eq!((other.is_request(), other.is_reply()), (false, byte == 7), "byte {byte}");
        }
    }
}
