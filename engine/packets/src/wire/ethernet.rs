//! Ethernet (IEEE 802.3, 3.2).

use std::ops::Range;

use super::view::{Field, Header};

/// A MAC address.
pub type Mac = [u8; 6];

/// To all stations.
pub const BROADCAST: Mac = [0xFF; 6];
/// The frame check sequence behind every frame (IEEE 802.3, 3.2.9); network cards add and remove it.
pub const FCS_BYTES: u32 = 4;
/// The shortest frame, FCS included (IEEE 802.3, 4A.4.2: minFrameSize).
pub const SHORTEST_FRAME_BYTES: u32 = 64;
/// Preamble, start of frame and gap between frames (IEEE 802.3, 3.2.1, 3.2.2, 4A.4.2).
pub const WIRE_OVERHEAD_BYTES: usize = 20;

/// Ethernet's header: two addresses and a type.
#[derive(Debug)]
pub struct Ethernet;

impl Header for Ethernet {
    const BYTES: usize = 14;
}

/// IEEE 802.3, 3.2.4.
pub const DESTINATION: Field<Ethernet, Mac> = Field::new(0);
/// IEEE 802.3, 3.2.5.
pub const SOURCE: Field<Ethernet, Mac> = Field::new(6);
/// Destination, then source.
pub const ADDRESSES: Field<Ethernet, [u8; 12]> = Field::new(0);
/// What is carried, or the type of a tag (IEEE 802.3, 3.2.6); see [`super::ethertype`].
pub const TYPE: Field<Ethernet, u16> = Field::new(12);

/// Where the type of what begins at byte `at` stands: right before it, for Ethernet's header and a tag both end with
/// it.
pub fn type_before(at: usize) -> Range<usize> {
    at - 2..at
}

/// Source and destination change places; a frame too short to have both is left alone.
#[inline(always)]
pub fn swap_addresses(frame: &mut [u8]) {
    if let Some(addresses) = frame.first_chunk_mut::<12>() {
        addresses.rotate_left(6);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ethertype;
    use super::*;

    /// IEEE 802.3, figure 3-1, with IPv4 as the type.
    const BYTES: [u8; 14] = [2, 0, 0, 0, 0, 0xBB, 2, 0, 0, 0, 0, 0xAA, 0x08, 0x00];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Ethernet::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(DESTINATION), view.get(SOURCE)), ([2, 0, 0, 0, 0, 0xBB], [2, 0, 0, 0, 0, 0xAA]));
        assert_eq!((view.get(TYPE), view.get(ADDRESSES)[..] == BYTES[..12]), (ethertype::IPV4, true));
        let mut written = Vec::new();
        let mut header = Ethernet::append(&mut written);
        header.set(DESTINATION, [2, 0, 0, 0, 0, 0xBB]);
        header.set(SOURCE, [2, 0, 0, 0, 0, 0xAA]);
        header.set(TYPE, ethertype::IPV4);
        assert_eq!(written, BYTES);
        assert_eq!(type_before(Ethernet::BYTES), TYPE.range(0));
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..14).for_each(|length| assert!(Ethernet::at(&BYTES[..length], 0).is_none(), "{length}"));
    }

    #[test]
    fn addresses_change_places_and_the_rest_stays() {
        let mut bytes: Vec<u8> = (0..20).collect();
        swap_addresses(&mut bytes);
        assert_eq!(bytes[..12], [6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5]);
        assert_eq!(bytes[12..], (12..20).collect::<Vec<u8>>());
        let mut stub = [1, 2, 3];
        swap_addresses(&mut stub);
        assert_eq!(stub, [1, 2, 3], "a frame too short to have addresses is left alone");
    }
}
