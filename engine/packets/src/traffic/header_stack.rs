//! From layers to the header bytes of a stream: what is the same in every frame, and the places of what is not.

use std::ops::Range;

use nicbench_protocol::Layer;

use super::encode::Encoder;
use super::signature_search::SignatureSearch;
use super::varied_field::VariedField;
use crate::error::{EngineError, ErrorKind};
use crate::wire::headers::Ip;
use crate::wire::{ethertype, ip_protocol, ipv4, ipv6};

const MOST_LAYERS: usize = 32;

/// A header whose length or checksum must be computed; `at` is its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputedHeader {
    Ipv4 {
        at: usize,
    },
    Ipv6 {
        at: usize,
    },
    Udp {
        at: usize,
        ip: Ip,
        checksum: bool,
    },
    Tcp {
        at: usize,
        ip: Ip,
    },
    /// A length field of a tunnel's header: it counts the bytes from `from` on.
    Length {
        at: usize,
        from: usize,
    },
}

/// The headers of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct HeaderStack {
    /// Everything before the signature; lengths, checksums and varied fields are zero.
    pub header: Vec<u8>,
    pub parts: Vec<ComputedHeader>,
    pub places: Vec<VariedField>,
    /// Bytes that the DUT may change although it does not forward by them.
    pub free: Vec<Range<usize>>,
    /// The end of the outermost Ethernet header and its tags.
    pub link_bytes: usize,
    /// Where the payload begins for whoever forwards the frame: behind it nothing may change.
    pub untouched_from: usize,
    /// How the receiver finds the signature.
    pub search: SignatureSearch,
}

impl HeaderStack {
    /// Whoever put these headers on may have routed the packet inside before: its hop limit is then another.
    pub fn free_hop_limit(&mut self) {
        let hop_limit = self.parts.iter().rev().find_map(|part| match *part {
            ComputedHeader::Ipv4 { at } => Some(ipv4::HOP_LIMIT.range(at)),
            ComputedHeader::Ipv6 { at } => Some(ipv6::HOP_LIMIT.range(at)),
            _ => None,
        });
        if let Some(bytes) = hop_limit {
            self.places.retain(|place| place.bytes != bytes);
            self.free.push(bytes);
        }
    }

    /// Fields that are varied alike in the headers sent have the same value in the same flow: from the innermost one on,
    /// for a tunnel that begins or ends on the way adds or takes the outer ones.
    pub fn take_orders(&mut self, sent: &Self) {
        let mut left = sent.places.as_slice();
        for place in self.places.iter_mut().rev() {
            let is_alike = |other: &VariedField| {
                let (own, other) = (place.values, other.values);
                (own.first, own.count, own.step) == (other.first, other.count, other.step)
            };
            let Some(found) = left.iter().rposition(is_alike) else { continue };
            place.values = left[found].values;
            left = &left[..found];
        }
    }
}

/// Builds the headers; `stream` is named in errors.
pub fn build(stream: &str, layers: &[Layer]) -> Result<HeaderStack, EngineError> {
    if layers.is_empty() || layers.len() > MOST_LAYERS {
        return Err(refuse(stream, &format!("{} layers", layers.len()), &format!("give 1 to {MOST_LAYERS}")));
    }
    let mut encoder = Encoder::new(stream);
    // The ends of the outermost IP and transport headers, and where it begins what a forwarder has no business in.
    let (mut outermost_ip, mut outermost, mut carried) = (None, None, None);
    for (index, layer) in layers.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| &layers[index]);
        check_order(stream, before, layer)?;
        let next = layers.get(index + 1);
        check_carried(stream, layer, next)?;
        if is_behind_carrier(before, layer) {
            carried = carried.or(Some(encoder.bytes.len()));
        }
        encode(&mut encoder, layer, next)?;
        match layer {
            Layer::Ipv4 { .. } | Layer::Ipv6 { .. } => outermost_ip = outermost_ip.or(Some(encoder.bytes.len())),
            Layer::Udp { .. } | Layer::Tcp { .. } => outermost = outermost.or(Some(encoder.bytes.len())),
            _ => {}
        }
    }
    let length = encoder.bytes.len();
    let untouched_from = carried.or(outermost).or(outermost_ip).unwrap_or(encoder.link_bytes.min(length));
    let (search, link_bytes) = (search(layers, length), encoder.link_bytes);
    let (parts, places) = (encoder.parts, encoder.places);
    Ok(HeaderStack { header: encoder.bytes, parts, places, free: Vec::new(), link_bytes, untouched_from, search })
}

/// Whether this layer is the first one that whoever forwards the frame leaves alone: a tunnel's header behind IP or UDP,
/// or what is behind labels, segments and the header of a session, which may change on the way.
fn is_behind_carrier(before: Option<&Layer>, layer: &Layer) -> bool {
    use Layer::{Geneve, Gre, Gtp, Ipv4, Ipv6, Mpls, Pppoe, SegmentRouting, Vxlan};
    match before {
        Some(Ipv4 { .. } | Ipv6 { .. }) => matches!(layer, Ipv4 { .. } | Ipv6 { .. } | Gre { .. }),
        Some(Mpls { .. }) => !matches!(layer, Mpls { .. }),
        Some(SegmentRouting { .. } | Pppoe { .. }) => true,
        _ => matches!(layer, Vxlan { .. } | Geneve { .. } | Gtp { .. }),
    }
}

/// Where the receiver looks for the signature behind `length` bytes of headers.
fn search(layers: &[Layer], length: usize) -> SignatureSearch {
    let ends_in_transport = matches!(layers.last(), Some(Layer::Udp { .. } | Layer::Tcp { .. }));
    let is_tunnel = |index: usize| {
        let before = index.checked_sub(1).map(|index| &layers[index]);
        is_behind_carrier(before, &layers[index]) && !matches!(layers[index], Layer::Vxlan { .. })
    };
    let has_vxlan = layers.iter().any(|layer| matches!(layer, Layer::Vxlan { .. }));
    match ends_in_transport && !(0..layers.len()).any(is_tunnel) {
        true if has_vxlan => SignatureSearch::Carried,
        true => SignatureSearch::Payload,
        false => SignatureSearch::At(length),
    }
}

fn encode(encoder: &mut Encoder, layer: &Layer, next: Option<&Layer>) -> Result<(), EngineError> {
    match layer {
        Layer::Ethernet { source, destination, ethertype } => {
            encoder.ethernet(source, destination, type_of(next, *ethertype))?;
        }
        Layer::Vlan { tpid, id, priority, ethertype } => {
            encoder.vlan(*tpid, id, priority, type_of(next, *ethertype))?;
        }
        Layer::Ipv4 { source, destination, hop_limit, traffic_class, identification, protocol } => {
            let fields = [traffic_class, identification, hop_limit];
            encoder.ipv4([source, destination], fields, protocol_of(next, *protocol))?;
        }
        Layer::Ipv6 { source, destination, hop_limit, traffic_class, flow_label, protocol } => {
            let fields = [traffic_class, flow_label, hop_limit];
            encoder.ipv6([source, destination], fields, protocol_of(next, *protocol))?;
        }
        Layer::Udp { source, destination, checksum } => {
            let carries = matches!(next, Some(Layer::Vxlan { .. } | Layer::Geneve { .. } | Layer::Gtp { .. }));
            encoder.udp(source, destination, *checksum, carries)?;
        }
        Layer::Tcp { source, destination, sequence, acknowledgement, flags, window } => {
            encoder.tcp([source, destination], [sequence, acknowledgement], *flags, *window)?;
        }
        Layer::Vxlan { vni } => encoder.vxlan(vni)?,
        Layer::Gre { key } => encoder.gre(key.as_ref(), type_of(next, None))?,
        Layer::Geneve { vni } => encoder.geneve(vni, type_of(next, None))?,
        Layer::Mpls { label, traffic_class, hop_limit } => {
            encoder.mpls([label, traffic_class, hop_limit], !matches!(next, Some(Layer::Mpls { .. })))?;
        }
        Layer::SegmentRouting { segments, segments_left } => {
            encoder.segment_routing(segments, *segments_left, protocol_of(next, None))?;
        }
        Layer::Gtp { teid, qos_flow } => encoder.gtp(teid, qos_flow.as_ref())?,
        Layer::Pppoe { session } => encoder.pppoe(session, matches!(next, Some(Layer::Ipv6 { .. })))?,
        Layer::Raw { hex } => encoder.raw(hex)?,
    }
    Ok(())
}

fn type_of(next: Option<&Layer>, given: Option<u16>) -> u16 {
    match next {
        Some(Layer::Vlan { tpid, .. }) => *tpid,
        Some(Layer::Ipv4 { .. }) => ethertype::IPV4,
        Some(Layer::Ipv6 { .. }) => ethertype::IPV6,
        Some(Layer::Ethernet { .. }) => ethertype::BRIDGED_ETHERNET,
        Some(Layer::Mpls { .. }) => ethertype::MPLS,
        Some(Layer::Pppoe { .. }) => ethertype::PPPOE_SESSION,
        // Bytes that have no type of their own.
        _ => given.unwrap_or(ethertype::EXPERIMENTAL),
    }
}

fn protocol_of(next: Option<&Layer>, given: Option<u8>) -> u8 {
    match next {
        Some(Layer::Udp { .. }) => ip_protocol::UDP,
        Some(Layer::Tcp { .. }) => ip_protocol::TCP,
        Some(Layer::Ipv4 { .. }) => ip_protocol::IPV4,
        Some(Layer::Ipv6 { .. }) => ip_protocol::IPV6,
        Some(Layer::Gre { .. }) => ip_protocol::GRE,
        Some(Layer::SegmentRouting { .. }) => ip_protocol::ROUTING,
        Some(Layer::Ethernet { .. }) => ip_protocol::ETHERNET,
        _ => given.unwrap_or(ip_protocol::EXPERIMENTAL),
    }
}

/// Checks that a layer may follow the one before it.
fn check_order(stream: &str, before: Option<&Layer>, layer: &Layer) -> Result<(), EngineError> {
    use Layer::{Ethernet, Geneve, Gre, Gtp, Ipv4, Ipv6, Mpls, Pppoe, Raw, SegmentRouting, Tcp, Udp, Vlan, Vxlan};
    let is_behind_link = matches!(before, Some(Ethernet { .. } | Vlan { .. }));
    let is_behind_ip = matches!(before, Some(Ipv4 { .. } | Ipv6 { .. }));
    let is_behind_gre = matches!(before, Some(Gre { .. }));
    let is_behind_mpls = matches!(before, Some(Mpls { .. }));
    let carries_either =
        matches!(before, Some(Geneve { .. } | SegmentRouting { .. })) || is_behind_gre || is_behind_mpls;
    let carries_ip = matches!(before, Some(Gtp { .. } | Pppoe { .. })) || is_behind_ip || carries_either;
    let (fits, needed) = match layer {
        Ethernet { .. } => (
            matches!(before, None | Some(Vxlan { .. })) || carries_either,
            "first, or after `vxlan`, `geneve`, `gre`, `mpls` or `segment_routing`",
        ),
        Vlan { .. } => (is_behind_link, "after `ethernet` or `vlan`"),
        Ipv4 { .. } | Ipv6 { .. } => {
            (is_behind_link || carries_ip, "after `ethernet`, `vlan`, IP or a tunnel's header")
        }
        Udp { .. } | Tcp { .. } => (is_behind_ip, "after `ipv4` or `ipv6`"),
        Vxlan { .. } | Geneve { .. } | Gtp { .. } => (matches!(before, Some(Udp { .. })), "after `udp`"),
        Gre { .. } => (is_behind_ip, "after `ipv4` or `ipv6`"),
        Mpls { .. } => (is_behind_link || is_behind_gre || is_behind_mpls, "after `ethernet`, `vlan`, `gre` or `mpls`"),
        SegmentRouting { .. } => (matches!(before, Some(Ipv6 { .. })), "after `ipv6`"),
        Pppoe { .. } => (is_behind_link, "after `ethernet` or `vlan`"),
        Raw { .. } => (!matches!(before, Some(Raw { .. })), "once, as the last layer"),
    };
    let after_raw = matches!(before, Some(Raw { .. })) && !matches!(layer, Raw { .. });
    if after_raw {
        return Err(refuse(stream, &format!("the layer `{}` after `raw`", name(layer)), "make `raw` the last layer"));
    }
    if fits {
        return Ok(());
    }
    let place = before.map_or("as the first layer".to_owned(), |before| format!("after `{}`", name(before)));
    Err(refuse(stream, &format!("the layer `{}` {place}", name(layer)), &format!("put it {needed}")))
}

/// Checks that a header which names what it carries carries something.
fn check_carried(stream: &str, layer: &Layer, next: Option<&Layer>) -> Result<(), EngineError> {
    let is_ip = matches!(next, Some(Layer::Ipv4 { .. } | Layer::Ipv6 { .. }));
    let fits = match layer {
        Layer::Gtp { .. } | Layer::Pppoe { .. } => is_ip,
        Layer::SegmentRouting { .. } => is_ip || matches!(next, Some(Layer::Ethernet { .. })),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(refuse(stream, &format!("the layer `{}` carries no IP", name(layer)), "put `ipv4` or `ipv6` after it"))
}

/// The name that the protocol gives a layer.
fn name(layer: &Layer) -> &'static str {
    match layer {
        Layer::Ethernet { .. } => "ethernet",
        Layer::Vlan { .. } => "vlan",
        Layer::Ipv4 { .. } => "ipv4",
        Layer::Ipv6 { .. } => "ipv6",
        Layer::Udp { .. } => "udp",
        Layer::Tcp { .. } => "tcp",
        Layer::Vxlan { .. } => "vxlan",
        Layer::Gre { .. } => "gre",
        Layer::Geneve { .. } => "geneve",
        Layer::Mpls { .. } => "mpls",
        Layer::SegmentRouting { .. } => "segment_routing",
        Layer::Gtp { .. } => "gtp",
        Layer::Pppoe { .. } => "pppoe",
        Layer::Raw { .. } => "raw",
    }
}

fn refuse(stream: &str, what: &str, next: &str) -> EngineError {
    EngineError::new(ErrorKind::BadRequest, format!("stream {stream}: {what}"), next)
}

/// The layers that the flat fields of a request stand for are not built here: `template.rs` has a faster way for them.
#[cfg(test)]
mod tests {
    use super::*;

    fn layers(text: &str) -> Vec<Layer> {
        serde_json::from_str(text).unwrap()
    }

    const ETHERNET: &str = r#"{"layer":"ethernet","source":"02:00:00:00:00:01","destination":"02:00:00:00:00:02"}"#;
    const IPV4_LAYER: &str = r#"{"layer":"ipv4","source":"10.0.0.1","destination":"10.0.0.2"}"#;
    const UDP_LAYER: &str = r#"{"layer":"udp","source":1,"destination":2}"#;

    #[test]
    fn two_tags_and_tcp_have_their_types_and_offsets() {
        let tags = r#"{"layer":"vlan","tpid":34984,"id":100,"priority":3},{"layer":"vlan","id":200}"#;
        let tcp = r#"{"layer":"tcp","source":1,"destination":2}"#;
        let stack = build("s", &layers(&format!("[{ETHERNET},{tags},{IPV4_LAYER},{tcp}]"))).unwrap();
        assert_eq!(stack.header[12..22], [0x88, 0xA8, 0x60, 100, 0x81, 0x00, 0, 200, 0x08, 0x00]);
        assert_eq!((stack.header.len(), stack.untouched_from, stack.search), (62, 62, SignatureSearch::Payload));
        let ip = Ip { at: 22, is_v6: false, protocol: ip_protocol::TCP };
        assert_eq!(stack.parts, [ComputedHeader::Ipv4 { at: 22 }, ComputedHeader::Tcp { at: 42, ip }]);
    }

    #[test]
    fn what_vxlan_carries_is_payload_to_whoever_forwards_it() {
        let text = format!(
            "[{ETHERNET},{IPV4_LAYER},{UDP_LAYER},{{\"layer\":\"vxlan\",\"vni\":7}},{ETHERNET},{IPV4_LAYER},{UDP_LAYER}]"
        );
        let stack = build("s", &layers(&text)).unwrap();
        assert_eq!((stack.header.len(), stack.untouched_from, stack.search), (92, 42, SignatureSearch::Carried));
        assert_eq!(stack.header[42..50], [0x08, 0, 0, 0, 0, 0, 7, 0]);
    }

    #[test]
    fn fields_that_go_together_have_the_same_digit_of_the_flow() {
        let group = |count: u32| {
            let link = r#"{"layer":"ethernet","source":"02:00:00:00:00:01",
                "destination":{"first":"01:00:5e:40:00:01","count":9}}"#;
            let network = format!(
                r#"{{"layer":"ipv4","source":"10.0.0.1",
                "destination":{{"first":"239.192.0.1","count":{count},"together":true}}}}"#
            );
            build("s", &layers(&format!("[{link},{network},{UDP_LAYER}]")))
        };
        let stack = group(9).unwrap();
        let low = |place: usize, flow| stack.places[place].values.of(flow) & 0xFF;
        assert!((0..30).all(|flow| low(0, flow) == low(1, flow) && low(0, flow) == u128::from(flow % 9) + 1));
        assert!(group(8).err().unwrap().message.contains("goes together"));
    }

    #[test]
    fn a_layer_in_the_wrong_place_is_refused_by_name() {
        for (text, words) in [
            (format!("[{IPV4_LAYER}]"), ["`ipv4`", "first layer", "`ethernet`"]),
            (format!("[{ETHERNET},{UDP_LAYER}]"), ["`udp`", "`ethernet`", "`ipv4`"]),
            (format!("[{ETHERNET},{IPV4_LAYER},{{\"layer\":\"vxlan\",\"vni\":7}}]"), ["`vxlan`", "`ipv4`", "`udp`"]),
            (format!("[{{\"layer\":\"raw\",\"hex\":\"00\"}},{ETHERNET}]"), ["`ethernet`", "`raw`", "last"]),
            ("[]".to_owned(), ["0 layers", "1", "32"]),
        ] {
            let error = build("up", &layers(&text)).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)) && error.contains("up"), "{error}");
        }
    }

    #[test]
    fn fields_that_cannot_be_are_refused_by_name() {
        for (layer, words) in [
            (r#"{"layer":"vlan","id":4096}"#, ["vlan id", "4096", "4095"]),
            (r#"{"layer":"vlan","id":{"first":4000,"count":97}}"#, ["vlan id", "4096", "4095"]),
            (r#"{"layer":"vlan","id":{"first":1,"count":0}}"#, ["vlan id", "count", "0"]),
            (r#"{"layer":"vlan","id":"x"}"#, ["vlan id", "\"x\"", "number"]),
            (r#"{"layer":"ipv4","source":"::1","destination":"10.0.0.1"}"#, ["ipv4 source", "::1", "IPv4"]),
            (r#"{"layer":"ipv4","source":7,"destination":"10.0.0.1"}"#, ["ipv4 source", "7", "IPv4"]),
            (r#"{"layer":"raw","hex":"abc"}"#, ["raw", "hex", "pairs"]),
        ] {
            let error = build("up", &layers(&format!("[{ETHERNET},{layer}]"))).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
    }
}
