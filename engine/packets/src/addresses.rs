//! Parses MAC, IPv4 and IPv6 addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use nicbench_protocol::IpVersion;

use crate::error::{EngineError, ErrorKind};

/// Parses a MAC address: six pairs of hex digits with colons between. `place` is named in errors.
pub fn parse_mac(text: &str, place: &str) -> Result<[u8; 6], EngineError> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    let complete = mac.iter_mut().all(|byte| {
        let part = parts.next().filter(|part| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_hexdigit()));
        part.and_then(|part| u8::from_str_radix(part, 16).ok()).map(|value| *byte = value).is_some()
    });
    if complete && parts.next().is_none() {
        return Ok(mac);
    }
    let message = format!("{place}: {text:?} is not a MAC address");
    Err(EngineError::new(ErrorKind::BadRequest, message, "write it as 02:00:00:00:00:01"))
}

/// Formats a MAC address as [`parse_mac`] reads it.
pub fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Parses an IP address of this version to a number. `place` is named in errors.
pub fn parse_ip(text: &str, version: IpVersion, place: &str) -> Result<u128, EngineError> {
    let parsed = match version {
        IpVersion::V4 => text.parse::<Ipv4Addr>().ok().map(|address| u128::from(u32::from(address))),
        IpVersion::V6 => text.parse::<Ipv6Addr>().ok().map(u128::from),
    };
    parsed.ok_or_else(|| {
        let message = format!("{place}: {text:?} is not an IPv{} address", u8::from(version));
        EngineError::new(ErrorKind::BadRequest, message, "write an address of the version that `ip` names")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_survives_a_round_trip() {
        assert_eq!(mac_text(parse_mac("02:00:5e:10:fF:01", "s").unwrap()), "02:00:5e:10:ff:01");
    }

    #[test]
    fn what_is_no_mac_is_refused_by_name() {
        for text in ["", "02:00:00:00:00", "02:00:00:00:00:01:02", "02:00:00:00:00:+1", "0g:00:00:00:00:01", "é:é"] {
            assert!(parse_mac(text, "stream s").unwrap_err().message.contains("stream s"), "{text}");
        }
    }

    #[test]
    fn an_address_of_the_other_version_is_refused() {
        assert!(parse_ip("2001:db8::1", IpVersion::V4, "s").is_err());
        assert!(parse_ip("198.18.0.1", IpVersion::V6, "s").is_err());
        assert_eq!(parse_ip("0.0.1.2", IpVersion::V4, "s").unwrap(), 258);
    }
}
