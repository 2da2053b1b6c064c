//! VXLAN (RFC 7348 5): Ethernet within UDP.

use super::view::{Bits, Field, Header};

/// VXLAN's header.
#[derive(Debug)]
pub struct Vxlan;

impl Header for Vxlan {
    const BYTES: usize = 8;
}

/// RFC 7348 5, "Flags".
pub const FLAGS: Field<Vxlan, u8> = Field::new(0);
/// RFC 7348 5, "VXLAN Segment ID/VXLAN Network Identifier (VNI)".
pub const VNI: Bits<Vxlan> = Bits::new(4, 3, 0, 24);

/// RFC 7348 5: the flag I says that the identifier is valid.
pub const VNI_IS_VALID: u8 = 0x08;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7348 5, figure 1: VNI 0x123456.
    const BYTES: [u8; 8] = [0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Vxlan::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(FLAGS), view.get(VNI)), (VNI_IS_VALID, 0x12_3456));
        let mut written = Vec::new();
        let mut header = Vxlan::append(&mut written);
        header.set(FLAGS, VNI_IS_VALID);
        header.set(VNI, 0x12_3456);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..8).for_each(|length| assert!(Vxlan::at(&BYTES[..length], 0).is_none(), "{length}"));
    }
}
