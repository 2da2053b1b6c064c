//! What a stream's frames are made of: layers, fields that differ between flows, and mixes of sizes.

use serde::{Deserialize, Serialize};

/// One header of a frame, or bytes as they are. Layers stand in the order in which they are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum Layer {
    /// Ethernet II. The type follows from the next layer.
    Ethernet {
        /// MAC address.
        source: Field,
        /// MAC address.
        destination: Field,
        /// Only before `raw`; 0x88B5 (local experiments) where it is left out.
        #[serde(default)]
        ethertype: Option<u16>,
    },
    /// A tag of IEEE 802.1Q, or of 802.1ad with the type 0x88A8.
    Vlan {
        /// Tag protocol identifier.
        #[serde(default = "tag_8021q")]
        tpid: u16,
        /// 0 to 4095.
        id: Field,
        /// Priority code point, 0 to 7.
        #[serde(default)]
        priority: Field,
        /// As for Ethernet.
        #[serde(default)]
        ethertype: Option<u16>,
    },
    /// RFC 791, without options; never a fragment.
    Ipv4 {
        /// Address.
        source: Field,
        /// Address.
        destination: Field,
        /// Time to live.
        #[serde(default = "default_hop_limit")]
        hop_limit: Field,
        /// DSCP and ECN, one byte.
        #[serde(default)]
        traffic_class: Field,
        /// 16 bits.
        #[serde(default)]
        identification: Field,
        /// Only before `raw`; 253 (experiments, RFC 3692) where it is left out.
        #[serde(default)]
        protocol: Option<u8>,
    },
    /// RFC 8200, without extension headers.
    Ipv6 {
        /// Address.
        source: Field,
        /// Address.
        destination: Field,
        /// Hop limit.
        #[serde(default = "default_hop_limit")]
        hop_limit: Field,
        /// DSCP and ECN, one byte.
        #[serde(default)]
        traffic_class: Field,
        /// 20 bits.
        #[serde(default)]
        flow_label: Field,
        /// Only before `raw`; 253 where it is left out.
        #[serde(default)]
        protocol: Option<u8>,
    },
    /// RFC 768.
    Udp {
        /// Port.
        source: Field,
        /// Port.
        destination: Field,
        /// Over IPv4 a checksum may be left out; over IPv6 there always is one, before `vxlan` never.
        #[serde(default)]
        checksum: bool,
    },
    /// A header of RFC 9293, 20 bytes; no connection stands behind it.
    Tcp {
        /// Port.
        source: Field,
        /// Port.
        destination: Field,
        /// 32 bits.
        #[serde(default)]
        sequence: Field,
        /// 32 bits.
        #[serde(default)]
        acknowledgement: Field,
        /// ACK where it is left out.
        #[serde(default = "flag_ack")]
        flags: u8,
        /// 16 bits.
        #[serde(default = "default_window")]
        window: u16,
    },
    /// RFC 7348: the layers before it carry, those after it are carried.
    Vxlan {
        /// Network identifier, 24 bits.
        vni: Field,
    },
    /// RFC 2784: behind IP; it carries IP, MPLS or Ethernet.
    Gre {
        /// 32 bits (RFC 2890); without it there is no key.
        #[serde(default)]
        key: Option<Field>,
    },
    /// RFC 8926 without options: behind UDP; it carries Ethernet or IP.
    Geneve {
        /// Network identifier, 24 bits.
        vni: Field,
    },
    /// RFC 3032: one label. The last one, which carries IP or Ethernet, is marked as the bottom of the stack.
    Mpls {
        /// 20 bits.
        label: Field,
        /// 3 bits.
        #[serde(default)]
        traffic_class: Field,
        /// Time to live.
        #[serde(default = "default_hop_limit")]
        hop_limit: Field,
    },
    /// The segment routing header of SRv6 (RFC 8754): behind IPv6; it carries IP or Ethernet.
    SegmentRouting {
        /// Addresses in the order of the path, at least one.
        segments: Vec<String>,
        /// How many segments are still to come behind the destination; all but the first where it is left out.
        #[serde(default)]
        segments_left: Option<u8>,
    },
    /// GTP-U (3GPP TS 29.281): behind UDP; it carries IP.
    Gtp {
        /// Tunnel endpoint identifier, 32 bits.
        teid: Field,
        /// QoS flow, 6 bits, in a PDU session container of the uplink; without it there is none.
        #[serde(default)]
        qos_flow: Option<Field>,
    },
    /// The session stage of PPPoE (RFC 2516): behind Ethernet or a tag; it carries IP.
    Pppoe {
        /// Session, 16 bits.
        session: Field,
    },
    /// Bytes as they are: nothing in them is computed or compared with what they seem to be.
    Raw {
        /// Pairs of hexadecimal digits; spaces are ignored.
        hex: String,
    },
}

/// A field's value: the same in every frame, or another one in each flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Field {
    /// The same in every frame.
    Number(u64),
    /// An address, the same in every frame.
    Text(String),
    /// Differs between flows.
    Varied(Varied),
}

impl Default for Field {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// `count` values from `first` on in steps of `step`: in turn over the flows, or drawn for each flow where there is a
/// seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Varied {
    /// A number or an address.
    pub first: First,
    /// How many values there are.
    pub count: u64,
    /// From one value to the next.
    #[serde(default = "one_step")]
    pub step: u64,
    /// Each flow's value is drawn with this seed; without it the values are taken in turn.
    #[serde(default)]
    pub seed: Option<u64>,
    /// In step with the varied field before, which has as many values: a group's MAC address and its IP address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
}

/// The first of a field's values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum First {
    /// A number.
    Number(u64),
    /// An address.
    Text(String),
}

/// One size of a mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedSize {
    /// With FCS.
    pub frame_bytes: u32,
    /// Exactly this many frames, of the sum of all weights, are of this size.
    pub weight: u32,
}

/// Every size in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeSweep {
    /// The first size, with FCS.
    pub from: u32,
    /// No size is larger.
    pub to: u32,
    /// From one size to the next.
    #[serde(default = "one_byte")]
    pub step: u32,
}

fn tag_8021q() -> u16 {
    0x8100
}

fn default_hop_limit() -> Field {
    Field::Number(64)
}

fn flag_ack() -> u8 {
    0x10
}

fn default_window() -> u16 {
    65_535
}

fn one_step() -> u64 {
    1
}

fn one_byte() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_survives_a_round_trip() {
        let layers = [
            r#"{"layer":"ethernet","source":"02:00:00:00:00:01","destination":"02:00:00:00:00:02"}"#,
            r#"{"layer":"vlan","tpid":34984,"id":{"first":100,"count":4},"priority":5}"#,
            r#"{"layer":"ipv4","source":{"first":"10.0.0.1","count":9,"step":2},"destination":"10.1.0.1","hop_limit":9}"#,
            r#"{"layer":"ipv6","source":"2001:db8::1","destination":"2001:db8::2","flow_label":77}"#,
            r#"{"layer":"udp","source":{"first":1024,"count":64512,"seed":7},"destination":9,"checksum":true}"#,
            r#"{"layer":"tcp","source":1,"destination":2,"flags":2}"#,
            r#"{"layer":"vxlan","vni":{"first":1,"count":2}}"#,
            r#"{"layer":"gre","key":{"first":1,"count":2}}"#,
            r#"{"layer":"geneve","vni":7}"#,
            r#"{"layer":"mpls","label":16,"traffic_class":5,"hop_limit":9}"#,
            r#"{"layer":"segment_routing","segments":["2001:db8::1","2001:db8::2"],"segments_left":0}"#,
            r#"{"layer":"gtp","teid":7,"qos_flow":9}"#,
            r#"{"layer":"pppoe","session":1}"#,
            r#"{"layer":"raw","hex":"ab cd"}"#,
        ];
        for text in layers {
            let layer: Layer = serde_json::from_str(text).unwrap();
            let again: Layer = serde_json::from_str(&serde_json::to_string(&layer).unwrap()).unwrap();
            assert_eq!(layer, again, "{text}");
        }
    }

    #[test]
    fn what_a_layer_leaves_out_has_the_documented_default() {
        let vlan: Layer = serde_json::from_str(r#"{"layer":"vlan","id":5}"#).unwrap();
        let expected = Layer::Vlan { tpid: 0x8100, id: Field::Number(5), priority: Field::Number(0), ethertype: None };
        assert_eq!(vlan, expected);
        let sweep: SizeSweep = serde_json::from_str(r#"{"from":64,"to":128}"#).unwrap();
        assert_eq!(sweep.step, 1);
    }

    #[test]
    fn an_unknown_layer_is_refused() {
        assert!(serde_json::from_str::<Layer>(r#"{"layer":"pigeon"}"#).is_err());
    }
}
