//! UDP (RFC 768).

use super::view::{Field, Header};

/// UDP's header.
#[derive(Debug)]
pub struct Udp;

impl Header for Udp {
    const BYTES: usize = 8;
}

/// RFC 768, "Source Port".
pub const SOURCE_PORT: Field<Udp, u16> = Field::new(0);
/// RFC 768, "Destination Port".
pub const DESTINATION_PORT: Field<Udp, u16> = Field::new(2);
/// Source port, then destination port; TCP has them in the same place.
pub const PORTS: Field<Udp, [u8; 4]> = Field::new(0);
/// RFC 768, "Length": header and payload.
pub const LENGTH: Field<Udp, u16> = Field::new(4);
/// RFC 768, "Checksum"; zero says that there is none.
pub const CHECKSUM: Field<Udp, u16> = Field::new(6);

#[cfg(test)]
mod tests {
    use super::super::tcp;
    use super::*;

    /// RFC 768: from port 49152 to port 9, 26 bytes with the header.
    const BYTES: [u8; 8] = [0xC0, 0, 0, 9, 0, 26, 0xAB, 0xCD];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Udp::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(SOURCE_PORT), view.get(DESTINATION_PORT)), (49152, 9));
        assert_eq!((view.get(LENGTH), view.get(CHECKSUM), view.get(PORTS)), (26, 0xABCD, [0xC0, 0, 0, 9]));
        let mut written = Vec::new();
        let mut header = Udp::append(&mut written);
        header.set(SOURCE_PORT, 49152);
        header.set(DESTINATION_PORT, 9);
        header.set(LENGTH, 26);
        header.set(CHECKSUM, 0xABCD);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..8).for_each(|length| assert!(Udp::at(&BYTES[..length], 0).is_none(), "{length}"));
    }

    #[test]
    fn tcp_has_its_ports_in_the_same_place() {
        assert_eq!(
            (SOURCE_PORT.range(0), DESTINATION_PORT.range(0)),
            (tcp::SOURCE_PORT.range(0), tcp::DESTINATION_PORT.range(0))
        );
    }
}
