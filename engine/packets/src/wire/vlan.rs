//! Tags of virtual LANs (IEEE 802.1Q 9.6), one or several behind Ethernet's header.

use super::ethertype::{OLD_PROVIDER_VLAN, PROVIDER_VLAN, VLAN};
use super::view::{Bits, Field, Header};

/// What follows the type of a tag: its control information, then the type of what comes next. The tag's own type is the
/// last field of the header before it.
#[derive(Debug)]
pub struct Vlan;

impl Header for Vlan {
    const BYTES: usize = 4;
}

/// Priority code point.
pub const PRIORITY: Bits<Vlan> = Bits::new(0, 2, 13, 3);
/// Drop eligible indicator.
pub const DROP_ELIGIBLE: Bits<Vlan> = Bits::new(0, 2, 12, 1);
/// VLAN identifier.
pub const ID: Bits<Vlan> = Bits::new(0, 2, 0, 12);
/// What is carried, or the type of another tag; see [`super::ethertype`].
pub const TYPE: Field<Vlan, u16> = Field::new(2);

/// Whether an EtherType says that a tag follows.
#[inline(always)]
pub fn is_tag(ethertype: u16) -> bool {
    matches!(ethertype, VLAN | PROVIDER_VLAN | OLD_PROVIDER_VLAN)
}

#[cfg(test)]
mod tests {
    use super::super::ethertype;
    use super::*;

    /// Priority 3, drop eligible, VLAN 100, IPv6 (IEEE 802.1Q, figure 9-1).
    const BYTES: [u8; 4] = [0x70, 100, 0x86, 0xDD];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Vlan::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(PRIORITY), view.get(DROP_ELIGIBLE), view.get(ID)), (3, 1, 100));
        assert_eq!(view.get(TYPE), ethertype::IPV6);
        let mut written = Vec::new();
        let mut tag = Vlan::append(&mut written);
        tag.set(PRIORITY, 3);
        tag.set(DROP_ELIGIBLE, 1);
        tag.set(ID, 100);
        tag.set(TYPE, ethertype::IPV6);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_tag_cut_short_is_none() {
        (0..4).for_each(|length| assert!(Vlan::at(&BYTES[..length], 0).is_none(), "{length}"));
    }

    #[test]
    fn only_the_types_of_tags_say_that_a_tag_follows() {
        assert!([0x8100, 0x88A8, 0x9100].into_iter().all(is_tag));
        assert!(![ethertype::IPV4, ethertype::IPV6, ethertype::ARP].into_iter().any(is_tag));
    }
}
