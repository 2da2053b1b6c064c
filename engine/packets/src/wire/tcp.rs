//! TCP (RFC 9293 3.1).

use super::view::{Bits, Field, Header, View};

/// TCP's header without options.
#[derive(Debug)]
pub struct Tcp;

impl Header for Tcp {
    const BYTES: usize = 20;
}

/// RFC 9293 3.1, "Source Port".
pub const SOURCE_PORT: Field<Tcp, u16> = Field::new(0);
/// RFC 9293 3.1, "Destination Port".
pub const DESTINATION_PORT: Field<Tcp, u16> = Field::new(2);
/// RFC 9293 3.1, "Sequence Number".
pub const SEQUENCE: Field<Tcp, u32> = Field::new(4);
/// RFC 9293 3.1, "Acknowledgment Number".
pub const ACKNOWLEDGEMENT: Field<Tcp, u32> = Field::new(8);
/// RFC 9293 3.1, "Data Offset": the header's length in words of 4 bytes.
pub const WORDS: Bits<Tcp> = Bits::new(12, 1, 4, 4);
/// RFC 9293 3.1, "Control bits".
pub const FLAGS: Field<Tcp, u8> = Field::new(13);
/// RFC 9293 3.1, "Window".
pub const WINDOW: Field<Tcp, u16> = Field::new(14);
/// RFC 9293 3.1, "Checksum".
pub const CHECKSUM: Field<Tcp, u16> = Field::new(16);

impl<B: AsRef<[u8]>> View<Tcp, B> {
    /// The length of the header with its options; one that claims less than it can have is taken for one without.
    pub fn header_bytes(&self) -> usize {
        (self.get(WORDS) as usize * 4).max(Tcp::BYTES)
    }
}

impl<B: AsMut<[u8]>> View<Tcp, B> {
    /// Makes a header of zeros one without options.
    pub fn begin(&mut self) {
        self.set(WORDS, (Tcp::BYTES / 4) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9293 3.1: from port 4660 to port 80, ACK.
    const BYTES: [u8; 20] = [0x12, 0x34, 0, 80, 0, 0, 0, 7, 0, 0, 0, 9, 0x50, 0x10, 0xFF, 0xFF, 0xAB, 0xCD, 0, 0];

    #[test]
    fn every_field_is_read_from_its_place_and_written_to_it() {
        let view = Tcp::at(&BYTES, 0).unwrap();
        assert_eq!((view.get(SOURCE_PORT), view.get(DESTINATION_PORT)), (0x1234, 80));
        assert_eq!((view.get(SEQUENCE), view.get(ACKNOWLEDGEMENT)), (7, 9));
        assert_eq!((view.get(WORDS), view.header_bytes(), view.get(FLAGS)), (5, 20, 0x10));
        assert_eq!((view.get(WINDOW), view.get(CHECKSUM)), (0xFFFF, 0xABCD));
        let mut written = Vec::new();
        let mut header = Tcp::append(&mut written);
        header.begin();
        header.set(SOURCE_PORT, 0x1234);
        header.set(DESTINATION_PORT, 80);
        header.set(SEQUENCE, 7);
        header.set(ACKNOWLEDGEMENT, 9);
        header.set(FLAGS, 0x10);
        header.set(WINDOW, 0xFFFF);
        header.set(CHECKSUM, 0xABCD);
        assert_eq!(written, BYTES);
    }

    #[test]
    fn options_make_the_header_longer_and_a_false_length_does_not_make_it_shorter() {
        let mut bytes = BYTES;
        for (words, expected) in [(0x80, 32), (0xF0, 60), (0x00, 20), (0x40, 20)] {
            bytes[12] = words;
            assert_eq!(Tcp::at(&bytes, 0).unwrap().header_bytes(), expected);
        }
    }

    #[test]
    fn a_header_cut_short_is_none() {
        (0..20).for_each(|length| assert!(Tcp::at(&BYTES[..length], 0).is_none(), "{length}"));
    }
}
