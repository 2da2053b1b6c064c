//! The kernel's messages of netlink (linux/netlink.h, linux/rtnetlink.h), taken apart. What is cut off says nothing.

use std::net::{Ipv4Addr, Ipv6Addr};

const HEADER_BYTES: usize = 16;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// Two bits of an attribute's type say how it is made.
const ATTRIBUTE_TYPE: u16 = 0x3fff;

/// One message.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// As `RTM_NEWLINK`.
    pub kind: u16,
    /// As `NLM_F_REPLACE`.
    pub flags: u16,
    /// The port of the socket that asked for the change: mostly the number of its process. 0: the kernel did it.
    pub port: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

/// The messages of what was received at once.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = number(bytes, 0)? as usize;
        let message = Message {
            kind: short(bytes, 4)?,
            flags: short(bytes, 6)?,
            port: number(bytes, 12)?,
            body: bytes.get(HEADER_BYTES..length)?,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// The attributes that begin `offset` bytes into a body, by type.
pub fn attributes(body: &[u8], offset: usize) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = body.get(offset..).unwrap_or_default();
    std::iter::from_fn(move || {
        let length = usize::from(short(rest, 0)?);
        let content = rest.get(ATTRIBUTE_HEADER_BYTES..length)?;
        let kind = short(rest, 2)? & ATTRIBUTE_TYPE;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

/// The first attribute of a type.
pub fn attribute(body: &[u8], offset: usize, kind: u16) -> Option<&[u8]> {
    attributes(body, offset).find_map(|(found, content)| (found == kind).then_some(content))
}

/// A number of 32 bits, in the machine's order.
pub fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(offset..offset + 4)?.try_into().ok()?))
}

/// A number of 16 bits, in the machine's order.
pub fn short(bytes: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(offset..offset + 2)?.try_into().ok()?))
}

/// Text up to its end by 0.
pub fn text(bytes: &[u8]) -> String {
    crate::text::name(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// An IP or hardware address, by its length.
pub fn address(bytes: &[u8]) -> String {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(four).to_string();
    }
    if let Ok(sixteen) = <[u8; 16]>::try_from(bytes) {
        return Ipv6Addr::from(sixteen).to_string();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A message of this kind, from a port.
    pub fn message(kind: u16, port: u32, body: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + body.len()) as u32;
        let head = [length.to_ne_bytes(), (u32::from(kind)).to_le_bytes(), [0; 4], port.to_ne_bytes()].concat();
        let mut bytes = [head, body.to_vec()].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// An attribute.
    pub fn attribute_of(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (ATTRIBUTE_HEADER_BYTES + content.len()) as u16;
        let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), content].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn messages_and_attributes_are_taken_apart() {
        let body = [vec![7; 4], attribute_of(1, b"abc"), attribute_of(0x8002, &[1, 2, 3, 4])].concat();
        let bytes = [message(16, 5, &body), message(17, 0, &[])].concat();
        let found: Vec<_> = messages(&bytes).collect();
        assert_eq!(found.iter().map(|each| (each.kind, each.port)).collect::<Vec<_>>(), [(16, 5), (17, 0)]);
        assert_eq!(attribute(found[0].body, 4, 1), Some(&b"abc"[..]));
        assert_eq!(attribute(found[0].body, 4, 2).map(address).as_deref(), Some("1.2.3.4"));
    }

    #[test]
    fn what_is_cut_off_is_left_out() {
        let bytes = message(16, 5, &attribute_of(1, b"abcdefgh"));
        for length in 0..bytes.len() {
            assert_eq!(messages(&bytes[..length]).count(), 0, "{length}");
        }
        assert_eq!(attributes(&[9, 0, 1, 0, 1], 0).count(), 0);
        assert_eq!(attributes(&[0, 0, 0, 0], 0).count(), 0);
        assert_eq!(messages(&[0; 64]).count(), 0);
    }
}
