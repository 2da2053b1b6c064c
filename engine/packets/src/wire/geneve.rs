//! GENEVE (RFC 8926 3.4): Ethernet or IP within UDP.

use super::view::{Bits, Field, Header};

/// GENEVE's header, without options.
#[derive(Debug)]
pub struct Geneve;

impl Header for Geneve {
    const BYTES: usize = 8;
}

/// RFC 8926 3.4, "Protocol Type": the EtherType of what is carried.
pub const PROTOCOL: Field<Geneve, u16> = Field::new(2);
/// RFC 8926 3.4, "Virtual Network Identifier (VNI)".
pub const VNI: Bits<Geneve> = Bits::new(4, 3, 0, 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = Geneve::append(&mut written);
        header.set(PROTOCOL, 0x6558);
        header.set(VNI, 0x12_3456);
        assert_eq!(written, [0, 0, 0x65, 0x58, 0x12, 0x34, 0x56, 0]);
        assert!(Geneve::at(&written, 1).is_none());
    }
}
