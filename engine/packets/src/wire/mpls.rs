//! MPLS (RFC 3032 2.1): one entry of the label stack.

use super::view::{Bits, Field, Header};

/// One entry of the label stack.
#[derive(Debug)]
pub struct Mpls;

impl Header for Mpls {
    const BYTES: usize = 4;
}

/// RFC 3032 2.1, "Label Value".
pub const LABEL: Bits<Mpls> = Bits::new(0, 3, 4, 20);
/// RFC 5462 3: the traffic class, which RFC 3032 calls "Experimental Use".
pub const TRAFFIC_CLASS: Bits<Mpls> = Bits::new(2, 1, 1, 3);
/// RFC 3032 2.1, "Bottom of Stack (S)".
pub const BOTTOM: Bits<Mpls> = Bits::new(2, 1, 0, 1);
/// RFC 3032 2.1, "Time to Live (TTL)".
pub const HOP_LIMIT: Field<Mpls, u8> = Field::new(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = Mpls::append(&mut written);
        header.set(LABEL, 0xABCDE);
        header.set(TRAFFIC_CLASS, 5);
        header.set(BOTTOM, 1);
        header.set(HOP_LIMIT, 64);
        assert_eq!(written, [0xAB, 0xCD, 0xEB, 64]);
        assert!(Mpls::at(&written, 1).is_none());
    }
}
