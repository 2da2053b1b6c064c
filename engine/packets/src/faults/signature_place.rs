//! Where in a frame the receiver looks: what a fault must hit to be seen, and what names the frame.

use crate::signature::SIGNATURE_BYTES;
use crate::traffic::SignatureSearch;
use crate::wire::headers::Transport;
use crate::wire::{Header, Headers, Udp, Vxlan, ip_protocol, udp};

/// The signature of a frame and what lies around it. Offsets count from the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignaturePlace {
    pub signature: usize,
    /// Behind the last byte that IP counts as its own: padding is nobody's.
    pub end: usize,
    /// The length field of the UDP header right before the signature.
    pub udp_length: Option<usize>,
}

impl SignaturePlace {
    /// In the payload of UDP or TCP, behind any tags; `None` where the frame is neither.
    pub fn usual(frame: &[u8]) -> Option<Self> {
        Self::by(SignatureSearch::Payload, frame)
    }

    /// Every place where streams put their signature by themselves, the usual one first.
    pub fn all(frame: &[u8]) -> impl Iterator<Item = Self> {
        [SignatureSearch::Payload, SignatureSearch::Carried, SignatureSearch::End]
            .into_iter()
            .filter_map(|search| Self::by(search, frame))
    }

    fn by(search: SignatureSearch, frame: &[u8]) -> Option<Self> {
        let signature = search.offset(frame)?;
        let outer = Headers::find(frame, 0)?;
        let inner = Headers::find(frame, outer.payload + Vxlan::BYTES);
        let is_before =
            |transport: &Transport| transport.protocol == ip_protocol::UDP && transport.at + Udp::BYTES == signature;
        let transports = [outer.transport, inner.and_then(|inner| inner.transport)];
        let udp_length =
            transports.into_iter().flatten().find(is_before).map(|transport| udp::LENGTH.offset(transport.at));
        Some(Self { signature, end: outer.end.max(signature + SIGNATURE_BYTES), udp_length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ip_protocol::UDP;

    /// Ethernet with `tags`, IPv4 of `protocol`, 8 bytes of UDP or 20 of TCP, a signature, 4 bytes more, and 6 of
    /// padding.
    fn frame(tags: usize, protocol: u8) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes.extend([0x81, 0, 0, 1].repeat(tags));
        let transport_bytes = if protocol == UDP { 8 } else { 20 };
        let total = (20 + transport_bytes + SIGNATURE_BYTES + 4) as u8;
        bytes.extend([0x08, 0, 0x45, 0, 0, total, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        let mut transport = vec![0; transport_bytes];
        if protocol != UDP {
            transport[12] = 0x50;
        }
        bytes.extend(transport);
        bytes.extend([0; SIGNATURE_BYTES + 4 + 6]);
        bytes
    }

    #[test]
    fn the_signature_of_udp_has_a_length_before_it_and_that_of_tcp_has_none() {
        assert_eq!(
            SignaturePlace::usual(&frame(0, UDP)),
            Some(SignaturePlace { signature: 42, end: 62, udp_length: Some(38) })
        );
        assert_eq!(
            SignaturePlace::usual(&frame(2, UDP)),
            Some(SignaturePlace { signature: 50, end: 70, udp_length: Some(46) })
        );
        assert_eq!(
            SignaturePlace::usual(&frame(0, 6)),
            Some(SignaturePlace { signature: 54, end: 74, udp_length: None })
        );
    }

    #[test]
    fn other_frames_have_no_usual_place() {
        let mut arp = vec![0; 60];
        (arp[12], arp[13]) = (0x08, 0x06);
        assert_eq!(SignaturePlace::usual(&arp), None);
        assert_eq!(SignaturePlace::usual(&[]), None);
    }
}
