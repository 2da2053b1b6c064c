//! Neighbour discovery of IPv6 (RFC 4861): solicitations and advertisements, which are messages of ICMPv6 (RFC 4443).

use super::ethernet::Mac;
use super::ip_protocol::ICMPV6;
use super::ipv6::Ipv6;
use super::view::{Field, Header, View};
use crate::checksum;

/// A solicitation or an advertisement without options: both have the same fields (RFC 4861 4.3, 4.4).
#[derive(Debug)]
pub struct NeighbourMessage;

impl Header for NeighbourMessage {
    const BYTES: usize = 24;
}

/// RFC 4861 4.3, 4.4, "Type": [`SOLICITATION`] or [`ADVERTISEMENT`].
pub const TYPE: Field<NeighbourMessage, u8> = Field::new(0);
/// RFC 4861 4.3, 4.4, "Code": 0.
pub const CODE: Field<NeighbourMessage, u8> = Field::new(1);
/// RFC 4443 2.3.
pub const CHECKSUM: Field<NeighbourMessage, u16> = Field::new(2);
/// RFC 4861 4.4: R, S and O of an advertisement.
pub const FLAGS: Field<NeighbourMessage, u8> = Field::new(4);
/// RFC 4861 4.3, 4.4, "Target Address".
pub const TARGET: Field<NeighbourMessage, [u8; 16]> = Field::new(8);

pub const SOLICITATION: u8 = 135;
pub const ADVERTISEMENT: u8 = 136;
/// The hop limit of every valid message (RFC 4861 7.1.1): no router has let it pass.
pub const HOP_LIMIT: u8 = 255;
/// Flag S (RFC 4861 4.4): the advertisement answers a solicitation.
pub const SOLICITED: u8 = 0x40;
/// Flag O (RFC 4861 4.4): the advertisement replaces what the receiver knew.
pub const OVERRIDE: u8 = 0x20;
/// The multicast address of all nodes (RFC 4291 2.7.1), and its MAC address (RFC 2464 7).
pub const ALL_NODES: u128 = 0xFF02 << 112 | 1;
pub const ALL_NODES_MAC: Mac = [0x33, 0x33, 0, 0, 0, 1];

/// The option that holds a MAC address (RFC 4861 4.6.1).
#[derive(Debug)]
pub struct LinkLayerAddress;

impl Header for LinkLayerAddress {
    const BYTES: usize = 8;
}

/// RFC 4861 4.6.1, "Type": [`SOURCE_LINK_LAYER_ADDRESS`] or [`TARGET_LINK_LAYER_ADDRESS`].
pub const OPTION_TYPE: Field<LinkLayerAddress, u8> = Field::new(0);
/// RFC 4861 4.6, "Length", in units of 8 bytes.
pub const OPTION_LENGTH: Field<LinkLayerAddress, u8> = Field::new(1);
/// RFC 4861 4.6.1, "Link-Layer Address".
pub const OPTION_MAC: Field<LinkLayerAddress, Mac> = Field::new(2);

pub const SOURCE_LINK_LAYER_ADDRESS: u8 = 1;
pub const TARGET_LINK_LAYER_ADDRESS: u8 = 2;

impl<B: AsMut<[u8]>> View<LinkLayerAddress, B> {
    /// Makes an option of zeros one of this type.
    pub fn begin(&mut self, option_type: u8, mac: Mac) {
        self.set(OPTION_TYPE, option_type);
        self.set(OPTION_LENGTH, 1);
        self.set(OPTION_MAC, mac);
    }
}

/// The checksum of a whole message of ICMPv6 (RFC 4443 2.3) between the addresses of `header`; zero over a message that
/// holds the right one.
pub fn icmpv6_checksum<B: AsRef<[u8]>>(header: &View<Ipv6, B>, message: &[u8]) -> u16 {
    let start = message.len() as u64 + u64::from(ICMPV6);
    let addresses = header.get(super::ipv6::ADDRESSES);
    checksum::finish(checksum::add(checksum::add(start, &addresses), message))
}

/// The multicast address of those who may have `target` (RFC 4291 2.7.1), and its MAC address (RFC 2464 7).
pub fn solicited_node(target: u128) -> (u128, Mac) {
    let last = target & 0xFF_FFFF;
    let [.., high, middle, low] = target.to_be_bytes();
    (0xFF02 << 112 | 0x0001_FF00_0000 | last, [0x33, 0x33, 0xFF, high, middle, low])
}

/// Whether every option has a length, and ends with the message at the latest (RFC 4861 4.6, 7.1.1).
pub fn has_valid_options(message: &[u8]) -> bool {
    let mut at = NeighbourMessage::BYTES;
    while at < message.len() {
        let option_bytes = message.get(at + 1).map_or(0, |length| usize::from(*length) * 8);
        if option_bytes == 0 || at + option_bytes > message.len() {
            return false;
        }
        at += option_bytes;
    }
    at == message.len()
}

/// The MAC address of the sender of a message, if an option says it (RFC 4861 4.6.1).
pub fn source_link_layer_address(message: &[u8]) -> Option<Mac> {
    link_layer_address(message, SOURCE_LINK_LAYER_ADDRESS)
}

/// The MAC address in the option of this type (RFC 4861 4.6.1).
pub fn link_layer_address(message: &[u8], option_type: u8) -> Option<Mac> {
    let mut at = NeighbourMessage::BYTES;
    // RFC 4861 4.6: every option is at least 8 bytes long, as many as this one has.
    while let Some(option) = LinkLayerAddress::at(message, at) {
        let option_bytes = usize::from(option.get(OPTION_LENGTH)) * 8;
        if option_bytes == 0 || at + option_bytes > message.len() {
            return None;
        }
        if option.get(OPTION_TYPE) == option_type {
            return Some(option.get(OPTION_MAC));
        }
        at += option_bytes;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An advertisement of scapy's: solicited and overriding, 2001:2::1 is at 02:00:00:00:00:01.
    const BYTES: [u8; 32] =
        [136, 0, 0xD4, 0x6F, 0x60, 0, 0, 0, 0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 1];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = NeighbourMessage::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(TYPE), view.get(CODE), view.get(CHECKSUM)), (ADVERTISEMENT, 0, 0xD46F));
        assert_eq!((view.get(FLAGS), view.get(TARGET)[..] == BYTES[8..24]), (SOLICITED | OVERRIDE, true));
        let option = LinkLayerAddress::at(&BYTES, NeighbourMessage::BYTES).unwrap();
        assert_eq!((option.get(OPTION_TYPE), option.get(OPTION_LENGTH)), (TARGET_LINK_LAYER_ADDRESS, 1));
        assert_eq!(option.get(OPTION_MAC), [2, 0, 0, 0, 0, 1]);
        let mut written = Vec::new();
        let mut message = NeighbourMessage::append(&mut written);
        message.set(TYPE, ADVERTISEMENT);
        message.set(CHECKSUM, 0xD46F);
        message.set(FLAGS, SOLICITED | OVERRIDE);
        message.set(TARGET, [0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        LinkLayerAddress::append(&mut written).begin(TARGET_LINK_LAYER_ADDRESS, [2, 0, 0, 0, 0, 1]);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn the_checksum_of_a_right_message_comes_to_zero() {
        let mut header = Vec::new();
        let mut ip = Ipv6::append(&mut header);
        ip.set(super::super::ipv6::SOURCE, 0x2001_0002 << 96 | 1);
        ip.set(super::super::ipv6::DESTINATION, 0xFE80 << 112 | 0xAA);
        assert_eq!(icmpv6_checksum(&ip, &BYTES), 0);
    }

    #[test]
    fn a_message_cut_short_is_none() {
        (0..24).for_each(|length| assert!(NeighbourMessage::at(&BYTES[..length], 0).is_none(), "{length}"));
        (0..32).for_each(|length| assert!(LinkLayerAddress::at(&BYTES[..length], 24).is_none(), "{length}"));
    }

    #[test]
    fn the_address_of_the_sender_is_found_behind_other_options() {
        let message = |options: &[u8]| [&[0; 24], options].concat();
        let ours = [1, 1, 2, 0, 0, 0, 0, 1];
        let other = [14, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(source_link_layer_address(&message(&ours)), Some([2, 0, 0, 0, 0, 1]));
        assert_eq!(source_link_layer_address(&message(&[&other[..], &ours].concat())), Some([2, 0, 0, 0, 0, 1]));
        assert_eq!(source_link_layer_address(&message(&other)), None);
    }

    #[test]
    fn those_who_may_have_an_address_are_asked_at_the_multicast_address_of_its_end() {
        // RFC 4291 2.7.1: 4037::01:800:200e:8c6c has the solicited-node address ff02::1:ff0e:8c6c.
        let (address, mac) = solicited_node(0x4037_0000_0000_0000_0001_0800_200E_8C6C);
        assert_eq!(address, 0xFF02_0000_0000_0000_0000_0001_FF0E_8C6C);
        assert_eq!(mac, [0x33, 0x33, 0xFF, 0x0E, 0x8C, 0x6C]);
    }

    #[test]
    fn options_are_valid_if_each_has_a_length_within_the_message() {
        assert!(has_valid_options(&[0; 24]) && has_valid_options(&BYTES));
        for options in [&[0; 8][..], &[1, 2, 0, 0, 0, 0, 0, 1], &[1], &[1, 1, 0, 0]] {
            assert!(!has_valid_options(&[&[0; 24], options].concat()), "{options:?}");
        }
    }

    #[test]
    fn options_without_length_or_longer_than_the_message_end_the_search() {
        assert_eq!(source_link_layer_address(&[0; 32]), None, "an option without length");
        assert_eq!(source_link_layer_address(&[[0; 24].as_slice(), &[1, 255, 0]].concat()), None);
        assert_eq!(source_link_layer_address(&[[0; 24].as_slice(), &[1, 2, 2, 0, 0, 0, 0, 1]].concat()), None);
        assert_eq!(source_link_layer_address(&[0; 10]), None);
    }
}
