//! The session stage of PPPoE (RFC 2516 4) with PPP's protocol field (RFC 1661 2), uncompressed.

use super::view::{Field, Header};

/// PPPoE's header and the protocol of PPP.
#[derive(Debug)]
pub struct Pppoe;

impl Header for Pppoe {
    const BYTES: usize = 8;
}

/// RFC 2516 4: version 1 and type 1.
pub const VERSION_AND_TYPE: Field<Pppoe, u8> = Field::new(0);
/// RFC 2516 4, "SESSION_ID".
pub const SESSION: Field<Pppoe, u16> = Field::new(2);
/// RFC 2516 4, "LENGTH": of what is behind the first 6 bytes.
pub const LENGTH: Field<Pppoe, u16> = Field::new(4);
/// RFC 1661 2, "Protocol".
pub const PROTOCOL: Field<Pppoe, u16> = Field::new(6);

/// RFC 2516 4: the values of the first byte.
pub const VERSION_1_TYPE_1: u8 = 0x11;
/// Bytes before those that [`LENGTH`] counts.
pub const BYTES_BEFORE_COUNTED: usize = 6;
/// Numbers of PPP's protocols (IANA, "PPP DLL Protocol Numbers").
pub mod ppp_protocol {
    pub const IPV4: u16 = 0x0021;
    pub const IPV6: u16 = 0x0057;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = Pppoe::append(&mut written);
        header.set(VERSION_AND_TYPE, VERSION_1_TYPE_1);
        header.set(SESSION, 0x0102);
        header.set(LENGTH, 0x0304);
        header.set(PROTOCOL, ppp_protocol::IPV6);
        assert_eq!(written, [0x11, 0, 1, 2, 3, 4, 0, 0x57]);
        assert!(Pppoe::at(&written, 1).is_none());
    }
}
