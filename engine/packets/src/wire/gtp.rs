//! GTP-U (3GPP TS 29.281 5.1): IP packets of a mobile device within UDP.

use super::view::{Bits, Field, Header};

/// The header without optional fields.
#[derive(Debug)]
pub struct Gtp;

impl Header for Gtp {
    const BYTES: usize = 8;
}

/// TS 29.281 5.1: version 1, protocol type GTP, and which optional fields there are.
pub const FLAGS: Field<Gtp, u8> = Field::new(0);
/// TS 29.281 6.1, "Message Type".
pub const MESSAGE: Field<Gtp, u8> = Field::new(1);
/// TS 29.281 5.1, "Length": of what is behind the first 8 bytes.
pub const LENGTH: Field<Gtp, u16> = Field::new(2);
/// TS 29.281 5.1, "Tunnel Endpoint Identifier".
pub const TEID: Field<Gtp, u32> = Field::new(4);

/// Version 1, protocol type GTP, no optional fields.
pub const PLAIN: u8 = 0x30;
/// As [`PLAIN`], with the flag E: an extension header follows.
pub const EXTENDED: u8 = 0x34;
/// TS 29.281 6.1: a packet of the user.
pub const PACKET: u8 = 255;

/// The optional fields and the extension header "PDU Session Container" (TS 29.281 5.2.2.7, TS 38.415 5.5.2), which
/// says to which QoS flow of 5G the packet belongs.
#[derive(Debug)]
pub struct SessionContainer;

impl Header for SessionContainer {
    const BYTES: usize = 8;
}

/// TS 29.281 5.1, "Next Extension Header Type".
pub const EXTENSION: Field<SessionContainer, u8> = Field::new(3);
/// TS 29.281 5.2.1: the length of the extension in units of 4 bytes.
pub const EXTENSION_LENGTH: Field<SessionContainer, u8> = Field::new(4);
/// TS 38.415 5.5.3.1: 0 for downlink, 1 for uplink, in the upper four bits.
pub const PDU_TYPE: Bits<SessionContainer> = Bits::new(5, 1, 4, 4);
/// TS 38.415 5.5.3.3, "QoS Flow Identifier".
pub const QOS_FLOW: Bits<SessionContainer> = Bits::new(6, 1, 0, 6);

/// TS 29.281 5.2.1: the type of the extension header.
pub const SESSION_CONTAINER: u8 = 0x85;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_to_its_place() {
        let mut written = Vec::new();
        let mut header = Gtp::append(&mut written);
        header.set(FLAGS, EXTENDED);
        header.set(MESSAGE, PACKET);
        header.set(LENGTH, 0x0102);
        header.set(TEID, 0x0A0B_0C0D);
        let mut container = SessionContainer::append(&mut written);
        container.set(EXTENSION, SESSION_CONTAINER);
        container.set(EXTENSION_LENGTH, 1);
        container.set(PDU_TYPE, 1);
        container.set(QOS_FLOW, 9);
        assert_eq!(written, [0x34, 0xFF, 1, 2, 10, 11, 12, 13, 0, 0, 0, 0x85, 1, 0x10, 9, 0]);
        assert!(Gtp::at(&written, 9).is_none() && SessionContainer::at(&written, 9).is_none());
    }
}
