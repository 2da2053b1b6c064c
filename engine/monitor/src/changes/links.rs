//! Interfaces as the kernel tells of them (linux/if_link.h), and in what one differs from what it was.

use nicbench_protocol::{ChangeAction, ChangeKind};

use super::messages::{address, attribute, attributes, number, text};

/// `struct ifinfomsg`, before its attributes.
const HEADER_BYTES: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_PROTINFO: u16 = 12;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_INFO_SLAVE_KIND: u16 = 4;
const IFLA_INFO_SLAVE_DATA: u16 = 5;
const IFLA_XDP: u16 = 43;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_PROG_ID: u16 = 4;
const XDP_MODES: [&str; 5] = ["none", "native", "generic", "hardware", "several"];
const IFLA_INET_CONF: u16 = 1;
const IFLA_INET6_CONF: u16 = 2;
const IS_UP: u32 = libc::IFF_UP as u32;
const HAS_NO_ARP: u32 = libc::IFF_NOARP as u32;
const TAKES_ALL: u32 = libc::IFF_PROMISC as u32;
const HAS_CARRIER: u32 = 1 << 16;

/// Options of a bridge that can stop frames (`IFLA_BR_`). `mcast_snooping` is none of them: the kernel itself ends it
/// where the table of groups is full.
const BRIDGE: [(u16, &str); 5] = [
    (4, "ageing_time of the bridge"),
    (5, "stp_state of the bridge"),
    (7, "vlan_filtering of the bridge"),
    (9, "group_fwd_mask of the bridge"),
    (39, "default_pvid of the bridge"),
];
/// The same of its ports (`IFLA_BRPORT_`).
const PORT: [(u16, &str); 14] = [
    (1, STATE),
    (4, "hairpin of the bridge's port"),
    (5, "guard of the bridge's port"),
    (8, "learning of the bridge's port"),
    (9, "flood of the bridge's port"),
    (10, "proxy_arp of the bridge's port"),
    (27, "mcast_flood of the bridge's port"),
    (28, "mcast_to_unicast of the bridge's port"),
    (29, "vlan_tunnel of the bridge's port"),
    (30, "bcast_flood of the bridge's port"),
    (31, "group_fwd_mask of the bridge's port"),
    (32, "neigh_suppress of the bridge's port"),
    (33, "isolated of the bridge's port"),
    (39, "locked of the bridge's port"),
];
const STATE: &str = "state of the bridge's port";
const STATES: [&str; 5] = ["disabled", "listening", "learning", "forwarding", "blocking"];

/// Settings of an interface for IPv4 in the kernel's order (linux/ip.h, `IPV4_DEVCONF_`): those that can stop frames.
const SETTINGS: [(usize, &str); 16] = [
    (FORWARDING, "net.ipv4.conf.*.forwarding"),
    (2, "net.ipv4.conf.*.proxy_arp"),
    (6, "net.ipv4.conf.*.shared_media"),
    (RP_FILTER, "net.ipv4.conf.*.rp_filter"),
    (8, "net.ipv4.conf.*.accept_source_route"),
    (12, "net.ipv4.conf.*.arp_filter"),
    (14, "net.ipv4.conf.*.disable_xfrm"),
    (15, "net.ipv4.conf.*.disable_policy"),
    (17, "net.ipv4.conf.*.arp_announce"),
    (18, "net.ipv4.conf.*.arp_ignore"),
    (22, "net.ipv4.conf.*.accept_local"),
    (23, "net.ipv4.conf.*.src_valid_mark"),
    (24, "net.ipv4.conf.*.proxy_arp_pvlan"),
    (25, "net.ipv4.conf.*.route_localnet"),
    (28, "net.ipv4.conf.*.ignore_routes_with_linkdown"),
    (29, "net.ipv4.conf.*.drop_unicast_in_l2_multicast"),
];
/// The same for IPv6 (linux/ipv6.h, `DEVCONF_`).
const SETTINGS_6: [(usize, &str); 4] = [
    (FORWARDING, "net.ipv6.conf.*.forwarding"),
    (3, "net.ipv6.conf.*.accept_ra"),
    (22, "net.ipv6.conf.*.proxy_ndp"),
    (26, "net.ipv6.conf.*.disable_ipv6"),
];
/// The place of `forwarding` among the settings of both.
pub const FORWARDING: usize = 0;
/// The place of `rp_filter` among those of IPv4.
pub const RP_FILTER: usize = 7;

/// Names and values.
pub type Options = Vec<(&'static str, u32)>;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    is_up: bool,
    resolves: bool,
    takes_all: bool,
    address: Option<String>,
    mtu: Option<u32>,
    queue_frames: Option<u32>,
    master: Option<u32>,
    /// The number of its XDP program and where it is attached.
    xdp: Option<(u32, &'static str)>,
    /// Of a bridge, or of a bridge's port.
    pub options: Options,
    settings: Vec<u32>,
    settings_6: Vec<u32>,
}

/// In what an interface differs from what it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: ChangeKind,
    pub action: ChangeAction,
    pub what: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Link {
    /// The interface of a message `RTM_NEWLINK`; `None` where it is of another family, or cut off.
    pub fn of(body: &[u8]) -> Option<Self> {
        if *body.first()? != libc::AF_UNSPEC as u8 {
            return None;
        }
        let flags = number(body, 8)?;
        let mut link = Self {
            index: index_of(body)?,
            name: String::new(),
            is_up: flags & IS_UP != 0,
            resolves: flags & HAS_NO_ARP == 0,
            takes_all: flags & TAKES_ALL != 0,
            address: None,
            mtu: None,
            queue_frames: None,
            master: None,
            xdp: None,
            options: vec![],
            settings: vec![],
            settings_6: vec![],
        };
        for (kind, content) in attributes(body, HEADER_BYTES) {
            match kind {
                IFLA_IFNAME => link.name = text(content),
                IFLA_ADDRESS => link.address = Some(address(content)),
                IFLA_MTU => link.mtu = number(content, 0),
                IFLA_TXQLEN => link.queue_frames = number(content, 0),
                IFLA_MASTER => link.master = number(content, 0),
                IFLA_LINKINFO => {
                    link.options = options_of(content, IFLA_INFO_KIND, IFLA_INFO_DATA, &BRIDGE);
                    let of_port = options_of(content, IFLA_INFO_SLAVE_KIND, IFLA_INFO_SLAVE_DATA, &PORT);
                    link.options.extend(with_carrier(of_port, flags));
                }
                IFLA_XDP => link.xdp = xdp_of(content),
                IFLA_AF_SPEC => {
                    link.settings = settings_of(content, libc::AF_INET, IFLA_INET_CONF);
                    link.settings_6 = settings_of(content, libc::AF_INET6, IFLA_INET6_CONF);
                }
                _ => {}
            }
        }
        Some(link)
    }

    /// A setting was told to have this value now; `None` where it had it before.
    pub fn set(&mut self, is_6: bool, place: usize, value: u32) -> Option<Difference> {
        let (settings, names) =
            if is_6 { (&mut self.settings_6, &SETTINGS_6[..]) } else { (&mut self.settings, &SETTINGS[..]) };
        let before = std::mem::replace(settings.get_mut(place)?, value);
        let name = names.iter().find_map(|(number, name)| (*number == place).then_some(*name))?;
        (before != value).then(|| setting(&name.replace('*', &self.name), before, value))
    }

    /// In what it differs from what it was `before`.
    pub fn differences(&self, before: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let state = |is_up: bool| Some(String::from(if is_up { "up" } else { "down" }));
        let on = |is_on: bool| Some(String::from(if is_on { "on" } else { "off" }));
        let properties = [
            ("name", Some(before.name.clone()), Some(self.name.clone())),
            ("state", state(before.is_up), state(self.is_up)),
            ("arp", state(before.resolves), state(self.resolves)),
            ("promiscuous", on(before.takes_all), on(self.takes_all)),
            ("address", before.address.clone(), self.address.clone()),
            ("mtu", shown(before.mtu), shown(self.mtu)),
            ("txqueuelen", shown(before.queue_frames), shown(self.queue_frames)),
            ("master", shown(before.master), shown(self.master)),
        ];
        // The kernel itself enables a port whose carrier is back.
        let options = self.options.iter().filter_map(|(name, value)| {
            let (_, was) = before.options.iter().find(|(other, was)| other == name && (*name != STATE || *was != 0))?;
            Some((*name, shown_option(name, *was), shown_option(name, *value)))
        });
        for (what, before, after) in properties.into_iter().chain(options) {
            if before != after {
                let (kind, action) = (ChangeKind::Link, ChangeAction::Changed);
                found.push(Difference { kind, action, what: what.into(), before, after });
            }
        }
        if self.xdp != before.xdp {
            let [before, after] = [before.xdp, self.xdp].map(|xdp| xdp.map(|(program, _)| program.to_string()));
            let what = self.xdp.map_or("", |(_, mode)| mode).into();
            found.push(Difference { kind: ChangeKind::Xdp, action: action_of(&before, &after), what, before, after });
        }
        for (is, was, names) in
            [(&self.settings, &before.settings, &SETTINGS[..]), (&self.settings_6, &before.settings_6, &SETTINGS_6[..])]
        {
            for (place, name) in names {
                if let (Some(is), Some(was)) = (is.get(*place), was.get(*place)) {
                    if is != was {
                        found.push(setting(&name.replace('*', &self.name), *was, *is));
                    }
                }
            }
        }
        found
    }
}

/// Whether something came, went or became another.
pub fn action_of<Value>(before: &Option<Value>, after: &Option<Value>) -> ChangeAction {
    match (before, after) {
        (None, _) => ChangeAction::Added,
        (_, None) => ChangeAction::Removed,
        _ => ChangeAction::Changed,
    }
}

/// The number of the interface that a message about one is of.
pub fn index_of(body: &[u8]) -> Option<u32> {
    number(body, 4)
}

fn setting(name: &str, before: u32, after: u32) -> Difference {
    Difference {
        kind: ChangeKind::Setting,
        action: ChangeAction::Changed,
        what: name.into(),
        before: Some((before as i32).to_string()),
        after: Some((after as i32).to_string()),
    }
}

fn shown(value: Option<u32>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// The options of a bridge's port, of a message `RTM_NEWLINK` of bridges.
pub fn options_of_port(body: &[u8]) -> Option<Options> {
    let told = attribute(body, HEADER_BYTES, IFLA_PROTINFO).filter(|_| body[0] == libc::AF_BRIDGE as u8)?;
    Some(with_carrier(named(told, &PORT), number(body, 8)?))
}

/// Without the state, which follows the carrier, where there is none.
fn with_carrier(mut options: Options, flags: u32) -> Options {
    options.retain(|(name, _)| *name != STATE || flags & HAS_CARRIER != 0);
    options
}

fn shown_option(name: &str, value: u32) -> Option<String> {
    let state = STATES.get(value as usize).filter(|_| name == STATE);
    Some(state.map_or_else(|| value.to_string(), |state| (*state).into()))
}

fn options_of(content: &[u8], kind: u16, data: u16, names: &[(u16, &'static str)]) -> Options {
    let is_bridge = attribute(content, 0, kind).is_some_and(|kind| text(kind) == "bridge");
    attribute(content, 0, data).filter(|_| is_bridge).map_or_else(Vec::new, |told| named(told, names))
}

/// Those of these attributes that are there, which are numbers of one, two or four bytes.
fn named(told: &[u8], names: &[(u16, &'static str)]) -> Options {
    let value_of = |(kind, name): &(u16, &'static str)| {
        let mut bytes = attribute(told, 0, *kind)?.to_vec();
        bytes.resize(4, 0);
        Some((*name, number(&bytes, 0)?))
    };
    names.iter().filter_map(value_of).collect()
}

fn xdp_of(content: &[u8]) -> Option<(u32, &'static str)> {
    let mode = *attribute(content, 0, IFLA_XDP_ATTACHED)?.first()?;
    let program = attribute(content, 0, IFLA_XDP_PROG_ID).and_then(|content| number(content, 0));
    (mode != 0).then(|| (program.unwrap_or_default(), *XDP_MODES.get(usize::from(mode)).unwrap_or(&"")))
}

fn settings_of(content: &[u8], family: i32, table: u16) -> Vec<u32> {
    let values = attribute(content, 0, family as u16).and_then(|of_family| attribute(of_family, 0, table));
    values.unwrap_or_default().chunks_exact(4).filter_map(|value| number(value, 0)).collect()
}

/// A request for all interfaces, without their counters.
pub fn request_of_links() -> Vec<u8> {
    const IFLA_EXT_MASK: u16 = 29;
    const SKIP_STATISTICS: u32 = 1 << 3;
    let mut body = vec![0; HEADER_BYTES];
    body.extend(8u16.to_ne_bytes());
    body.extend(IFLA_EXT_MASK.to_ne_bytes());
    body.extend(SKIP_STATISTICS.to_ne_bytes());
    request_of_all(libc::RTM_GETLINK, &body)
}

/// A request for all of something.
pub fn request_of_all(kind: u16, body: &[u8]) -> Vec<u8> {
    request(kind, libc::NLM_F_DUMP, body)
}

/// A request for what the body names.
pub fn request(kind: u16, flags: i32, body: &[u8]) -> Vec<u8> {
    let length = (16 + body.len()) as u32;
    let flags = (libc::NLM_F_REQUEST | flags) as u16;
    let mut request = length.to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    request
}

/// Whether a dump ends with a message of this kind: its end, or an error.
pub fn is_end(kind: u16) -> bool {
    matches!(i32::from(kind), libc::NLMSG_DONE | libc::NLMSG_ERROR)
}
