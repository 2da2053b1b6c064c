//! Finds its way through the headers of any frame: tags, IP, transport. It trusts no length that it reads.

/// Protocol numbers (IANA).
pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
pub const ICMPV6: u8 = 58;
/// EtherTypes (IANA).
pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86DD;
/// Tags of IEEE 802.1Q and 802.1ad, and what was used for two tags before the latter.
const TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const MOST_TAGS: usize = 4;
pub const MAC_BYTES: usize = 12;

/// What was found. Offsets count from the first byte of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers {
    /// Where the type of what Ethernet carries stands.
    pub type_at: usize,
    pub ethertype: u16,
    pub ip: Option<Ip>,
    pub transport: Option<Transport>,
    /// The first byte after the last header that is known.
    pub payload: usize,
    /// The first byte after what IP counts as its own; the frame's end without IP.
    pub end: usize,
}

/// An IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    pub at: usize,
    pub is_v6: bool,
    pub protocol: u8,
}

impl Ip {
    /// Source and destination, one after the other.
    pub fn addresses(self) -> std::ops::Range<usize> {
        if self.is_v6 { self.at + 8..self.at + 40 } else { self.at + 12..self.at + 20 }
    }
}

/// UDP, or TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transport {
    pub at: usize,
    pub protocol: u8,
}

/// The headers of the Ethernet frame that begins at `start` (not 0 for one that VXLAN carries); `None` where it is too short.
pub fn walk(frame: &[u8], start: usize) -> Option<Headers> {
    let mut type_at = start + MAC_BYTES;
    let mut ethertype = word(frame, type_at)?;
    for _ in 0..MOST_TAGS {
        if !TAGS.contains(&ethertype) {
            break;
        }
        type_at += 4;
        ethertype = word(frame, type_at)?;
    }
    let after = type_at + 2;
    let found = match ethertype {
        IPV4 => ipv4(frame, after),
        IPV6 => ipv6(frame, after),
        _ => None,
    };
    let (ip, payload, end) = match found {
        Some((ip, payload, end)) => (Some(ip), payload, end),
        None => (None, after, frame.len()),
    };
    let transport = ip.and_then(|ip| transport(frame, ip.protocol, payload, end));
    let payload = transport.map_or(payload, |(_, payload)| payload);
    Some(Headers { type_at, ethertype, ip, transport: transport.map(|(transport, _)| transport), payload, end })
}

/// RFC 791 3.1. A fragment but the first has no transport header.
fn ipv4(frame: &[u8], at: usize) -> Option<(Ip, usize, usize)> {
    let header = frame.get(at..at + 20)?;
    let header_bytes = usize::from(header[0] & 0x0F) * 4;
    if header[0] >> 4 != 4 || header_bytes < 20 {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_later_fragment = (header[6] & 0x1F) != 0 || header[7] != 0;
    let protocol = if is_later_fragment { 0 } else { header[9] };
    let end = frame.len().min(at + total.max(header_bytes));
    Some((Ip { at, is_v6: false, protocol }, at + header_bytes, end))
}

/// RFC 8200 3; extension headers are payload here.
fn ipv6(frame: &[u8], at: usize) -> Option<(Ip, usize, usize)> {
    let header = frame.get(at..at + 40)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    Some((Ip { at, is_v6: true, protocol: header[6] }, at + 40, frame.len().min(at + 40 + length)))
}

fn transport(frame: &[u8], protocol: u8, at: usize, end: usize) -> Option<(Transport, usize)> {
    let header_bytes = match protocol {
        UDP => 8,
        // RFC 9293 3.1: the data offset counts words of 4 bytes.
        TCP => usize::from(frame.get(at + 12)? >> 4).max(5) * 4,
        _ => return None,
    };
    (at + header_bytes <= end).then_some((Transport { at, protocol }, at + header_bytes))
}

/// 16 bits, big endian.
pub fn word(frame: &[u8], at: usize) -> Option<u16> {
    let [high, low] = frame.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes([*high, *low]))
}

/// Any number of bytes up to 16, big endian.
pub fn number(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(ethertype: &[u8], rest: &[u8]) -> Vec<u8> {
        [&[0u8; 12][..], ethertype, rest].concat()
    }

    fn ipv4(protocol: u8, total: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        header[2..4].copy_from_slice(&total.to_be_bytes());
        [header, payload.to_vec()].concat()
    }

    #[test]
    fn tags_are_passed_over_and_padding_is_not_payload() {
        let packet = ipv4(UDP, 32, &[0; 30]);
        let headers = walk(&frame(&[0x88, 0xA8, 0, 1, 0x81, 0, 0, 2, 8, 0], &packet), 0).unwrap();
        assert_eq!((headers.type_at, headers.payload, headers.end), (20, 50, 54));
        assert_eq!(headers.transport, Some(Transport { at: 42, protocol: UDP }));
    }

    #[test]
    fn options_of_ip_and_tcp_are_counted() {
        let mut tcp = [0; 40];
        tcp[12] = 0x80;
        let mut packet = ipv4(TCP, 60, &tcp);
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().payload, 14 + 20 + 32);
        packet[0] = 0x46;
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().transport.unwrap().at, 14 + 24);
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let mut packet = ipv4(UDP, 40, &[0; 20]);
        packet[7] = 1;
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().transport, None);
    }

    #[test]
    fn no_frame_however_short_or_false_is_too_much() {
        let tagged = frame(&[0x81, 0, 0, 1, 0x81, 0, 0, 1, 0x86, 0xDD], &[0x6F; 60]);
        for length in 0..tagged.len() {
            let _ = walk(&tagged[..length], 0);
            let _ = walk(&tagged[..length], 50);
        }
        let mut packet = ipv4(UDP, 65_535, &[0; 4]);
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().transport, None);
        packet[2..4].fill(0);
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().end, 34);
        packet[0] = 0x41;
        assert_eq!(walk(&frame(&[8, 0], &packet), 0).unwrap().ip, None);
    }
}
