//! Echo requests and replies of ICMP (RFC 792) and ICMPv6 (RFC 4443 4.1): both have the same fields.

use super::view::{Field, Header};

/// A message without its data.
#[derive(Debug)]
pub struct Echo;

impl Header for Echo {
    const BYTES: usize = 8;
}

/// RFC 792, RFC 4443 4.1, "Type".
pub const TYPE: Field<Echo, u8> = Field::new(0);
/// RFC 792, RFC 4443 4.1, "Code": 0.
pub const CODE: Field<Echo, u8> = Field::new(1);
/// RFC 792, RFC 4443 2.3.
pub const CHECKSUM: Field<Echo, u16> = Field::new(2);
/// RFC 792, RFC 4443 4.1, "Identifier": an answer has that of its request.
pub const IDENTIFIER: Field<Echo, u16> = Field::new(4);
/// RFC 792, RFC 4443 4.1, "Sequence Number": an answer has that of its request.
pub const SEQUENCE: Field<Echo, u16> = Field::new(6);

/// RFC 792.
pub const REQUEST: u8 = 8;
/// RFC 792.
pub const REPLY: u8 = 0;
/// RFC 4443 4.1.
pub const V6_REQUEST: u8 = 128;
/// RFC 4443 4.2.
pub const V6_REPLY: u8 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let bytes = [8, 0, 0x12, 0x34, 0, 7, 0, 1];
        let view = Echo::at(&bytes, 0).unwrap();
        assert_eq!((view.get(TYPE), view.get(CODE), view.get(CHECKSUM)), (REQUEST, 0, 0x1234));
        let mut written = bytes;
        let mut view = Echo::at_mut(&mut written, 0).unwrap();
        view.set(TYPE, REPLY);
        view.set(CHECKSUM, 0x1A34);
        assert_eq!(written, [0, 0, 0x1A, 0x34, 0, 7, 0, 1]);
        (0..8).for_each(|length| assert!(Echo::at(&bytes[..length], 0).is_none(), "{length}"));
    }
}
