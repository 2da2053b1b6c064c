//! GRE (RFC 2784, the key of RFC 2890): any protocol within IP.

use super::view::{Field, Header};

/// GRE's header, without checksum and sequence number.
#[derive(Debug)]
pub struct Gre;

impl Header for Gre {
    const BYTES: usize = 4;
}

/// RFC 2784 2.1: which of the optional fields there are; the version, zero, is among its bits.
pub const FLAGS: Field<Gre, u16> = Field::new(0);
/// RFC 2784 2.1, "Protocol Type": the EtherType of what is carried.
pub const PROTOCOL: Field<Gre, u16> = Field::new(2);

/// RFC 2890 2, "Key Present (bit 2)".
pub const KEY_PRESENT: u16 = 0x2000;

/// RFC 2890 2: the key, behind GRE's header where [`KEY_PRESENT`] says so.
#[derive(Debug)]
pub struct GreKey;

impl Header for GreKey {
    const BYTES: usize = 4;
}

/// RFC 2890 2.1, "Key Field".
pub const KEY: Field<GreKey, u32> = Field::new(0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = Gre::append(&mut written);
        header.set(FLAGS, KEY_PRESENT);
        header.set(PROTOCOL, 0x0800);
        GreKey::append(&mut written).set(KEY, 0x0102_0304);
        assert_eq!(written, [0x20, 0, 8, 0, 1, 2, 3, 4]);
        assert!(Gre::at(&written, 5).is_none() && GreKey::at(&written, 4).is_some());
    }
}
