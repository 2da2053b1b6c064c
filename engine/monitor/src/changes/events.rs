//! What a message of the kernel tells, as far as it is a change that somebody made (linux/rtnetlink.h, linux/neighbour.h,
//! linux/nf_tables.h). Pure.

use nicbench_protocol::{ChangeAction, ChangeKind};

use super::links::{FORWARDING, Link, Options, RP_FILTER, index_of, options_of_port, request};
use super::messages::{Message, address, attribute, attributes, messages, number, short, text};
use crate::sys::clock::monotonic_ns;

const REPLACES: u16 = libc::NLM_F_REPLACE as u16;
/// Routes that the kernel makes by itself (`RTPROT_`): by a redirect, with an address, by an advertisement.
const OF_THE_KERNEL: [u8; 3] = [1, 2, 9];
const IS_CLONED: u32 = 0x200;
const MAIN_TABLE: u32 = 254;
/// Entries that nobody learns (`NUD_NOARP | NUD_PERMANENT`).
const IS_STATIC: u16 = 0x40 | 0x80;
const HAS_FAILED: u16 = 0x20;
const RULESET: u16 = 10 << 8;
const NEW_GENERATION: u16 = RULESET | 15;
/// The greatest number of a process (`PID_MAX_LIMIT`); other ports are of a process's further sockets.
const MOST_PROCESSES: u32 = 1 << 22;

/// A change.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub kind: ChangeKind,
    pub action: ChangeAction,
    pub device: Option<u32>,
    pub what: Option<String>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub at_ns: Option<u64>,
    pub pid: Option<u32>,
    pub process: Option<String>,
}

impl Event {
    /// It was told just now.
    pub fn new(kind: ChangeKind, action: ChangeAction) -> Self {
        let (device, what, before, after, pid, process) = (None, None, None, None, None, None);
        Self { kind, action, device, what, before, after, at_ns: Some(monotonic_ns()), pid, process }
    }

    /// The same, made through a socket of this port.
    pub fn by(self, port: u32) -> Self {
        Self { pid: (port > 0 && port <= MOST_PROCESSES).then_some(port), ..self }
    }
}

/// What a message tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Told {
    Link(Link),
    LinkGone(u32),
    /// A port of a bridge.
    Port {
        device: u32,
        options: Options,
    },
    Address {
        device: u32,
        address: String,
        is_gone: bool,
    },
    /// A setting of one interface, at a `place` among its settings, or of all.
    Setting {
        device: Option<u32>,
        is_6: bool,
        place: usize,
        name: &'static str,
        value: u32,
    },
    Event(Event),
}

/// What a message of rtnetlink tells; `None` where the kernel did it by itself, or nothing is known of it.
pub fn told_of(message: &Message) -> Option<Told> {
    let body = message.body;
    match message.kind {
        libc::RTM_NEWLINK => {
            let port = || Some(Told::Port { device: index_of(body)?, options: options_of_port(body)? });
            Link::of(body).map(Told::Link).or_else(port)
        }
        libc::RTM_DELLINK if body.first() == Some(&(libc::AF_UNSPEC as u8)) => index_of(body).map(Told::LinkGone),
        libc::RTM_NEWADDR | libc::RTM_DELADDR => {
            let (device, address, is_gone) = (index_of(body)?, address_of(body)?, message.kind == libc::RTM_DELADDR);
            Some(Told::Address { device, address, is_gone })
        }
        libc::RTM_NEWROUTE | libc::RTM_DELROUTE => route(message),
        libc::RTM_NEWNEIGH | libc::RTM_DELNEIGH => neighbour(message),
        libc::RTM_NEWRULE | libc::RTM_DELRULE => Some(Told::Event(Event::new(ChangeKind::Rule, action(message)))),
        libc::RTM_NEWQDISC | libc::RTM_DELQDISC | libc::RTM_NEWTCLASS | libc::RTM_DELTCLASS => {
            control(message, ChangeKind::Queueing)
        }
        libc::RTM_NEWTFILTER | libc::RTM_DELTFILTER | RTM_NEWCHAIN | RTM_DELCHAIN => {
            control(message, ChangeKind::Filter)
        }
        libc::RTM_NEWACTION | libc::RTM_DELACTION => Some(Told::Event(Event::new(ChangeKind::Filter, action(message)))),
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => {
            let what = attribute(body, 8, 1).and_then(|id| number(id, 0)).map(|id| format!("nexthop {id}"));
            Some(Told::Event(Event { what, ..Event::new(ChangeKind::Route, action(message)) }))
        }
        RTM_NEWVLAN | RTM_DELVLAN => {
            let (device, what) = (index_of(body), Some("vlan".into()));
            Some(Told::Event(Event { device, what, ..Event::new(ChangeKind::Link, ChangeAction::Changed) }))
        }
        libc::RTM_NEWNETCONF => netconf(body),
        _ => None,
    }
}

const RTM_NEWCHAIN: u16 = 100;
const RTM_DELCHAIN: u16 = 101;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_DELNEXTHOP: u16 = 105;
const RTM_NEWVLAN: u16 = 112;
const RTM_DELVLAN: u16 = 113;

/// Messages of rtnetlink come in groups of four: new, delete, get, set.
fn action(message: &Message) -> ChangeAction {
    match (message.kind & 3, message.flags & REPLACES) {
        (1, _) => ChangeAction::Removed,
        (_, 0) => ChangeAction::Added,
        _ => ChangeAction::Changed,
    }
}

/// The address of `struct ifaddrmsg`, with its prefix.
pub fn address_of(body: &[u8]) -> Option<String> {
    let local = attribute(body, 8, 2).or_else(|| attribute(body, 8, 1))?;
    Some(format!("{}/{}", address(local), body.get(1)?))
}

fn route(message: &Message) -> Option<Told> {
    let body = message.body;
    let (prefix, protocol, kind) = (*body.get(1)?, *body.get(5)?, *body.get(7)?);
    let is_cloned = number(body, 8)? & IS_CLONED != 0;
    if is_cloned || (message.port == 0 && OF_THE_KERNEL.contains(&protocol)) {
        return None;
    }
    let of = |kind| attribute(body, 12, kind);
    let table = of(15).and_then(|table| number(table, 0)).unwrap_or(u32::from(*body.get(4)?));
    let to = of(1).map_or_else(|| "default".into(), |to| format!("{}/{prefix}", address(to)));
    let what = if table == MAIN_TABLE { to } else { format!("{to} table {table}") };
    let after = match kind {
        6 => Some("blackhole".into()),
        7 => Some("unreachable".into()),
        8 => Some("prohibit".into()),
        _ => of(5).map(address),
    };
    let action = action(message);
    let after = after.filter(|_| action != ChangeAction::Removed);
    let device = of(4).and_then(|device| number(device, 0));
    Some(Told::Event(Event { device, what: Some(what), after, ..Event::new(ChangeKind::Route, action) }))
}

/// An entry of the neighbour table that somebody set, or a static one of a bridge.
fn neighbour(message: &Message) -> Option<Told> {
    let body = message.body;
    let (family, state) = (i32::from(*body.first()?), short(body, 8)?);
    if message.port == 0 && (family != libc::AF_BRIDGE || state & IS_STATIC == 0) {
        return None;
    }
    let of = |kind| attribute(body, 12, kind).map(address);
    let (what, after) = if family == libc::AF_BRIDGE { (of(2), None) } else { (of(1), of(2)) };
    let action = if state & HAS_FAILED != 0 { ChangeAction::Removed } else { action(message) };
    // Whether an entry was there before is not told.
    let action = if action == ChangeAction::Added { ChangeAction::Changed } else { action };
    let after = after.filter(|_| action != ChangeAction::Removed);
    Some(Told::Event(Event { device: index_of(body), what, after, ..Event::new(ChangeKind::Neighbour, action) }))
}

fn control(message: &Message, kind: ChangeKind) -> Option<Told> {
    let what = attribute(message.body, 20, 1).map(text);
    Some(Told::Event(Event { device: index_of(message.body), what, ..Event::new(kind, action(message)) }))
}

/// The kernel tells a setting by itself where it was changed, and all of them together where an interface is made.
fn netconf(body: &[u8]) -> Option<Told> {
    const ALL: i32 = -1;
    let is_6 = match i32::from(*body.first()?) {
        libc::AF_INET => false,
        libc::AF_INET6 => true,
        _ => return None,
    };
    let value_of = |kind| attribute(body, 4, kind).and_then(|value| number(value, 0));
    let device = value_of(1)? as i32;
    let (name, place, kind) = match (is_6, value_of(2), value_of(3), value_of(5)) {
        (false, Some(value), None, None) => ("net.ipv4.conf.all.forwarding", FORWARDING, value),
        (true, Some(value), None, None) => ("net.ipv6.conf.all.forwarding", FORWARDING, value),
        (false, None, Some(value), None) => ("net.ipv4.conf.all.rp_filter", RP_FILTER, value),
        (false, None, None, Some(value)) => ("net.ipv4.conf.all.proxy_arp", 2, value),
        (true, None, None, Some(value)) => ("net.ipv6.conf.all.proxy_ndp", 22, value),
        _ => return None,
    };
    let device = if device == ALL { None } else { Some(u32::try_from(device).ok()?) };
    Some(Told::Setting { device, is_6, place, name, value: kind })
}

/// What messages about network adapters tell (linux/ethtool_netlink.h): offloads change also where something else does.
pub fn adapter_events(bytes: &[u8]) -> Vec<Event> {
    const ITS_HEADER: usize = 4;
    let told = messages(bytes).filter_map(|message| {
        let what = match message.body.first()? {
            3 => "link settings",
            5 => "link modes",
            13 => "offloads",
            15 => "private flags",
            17 => "rings",
            19 => "channels",
            21 => "coalescing",
            23 => "pause frames",
            25 => "energy efficiency",
            31 => "FEC",
            _ => return None,
        };
        let of = attribute(message.body, ITS_HEADER, 1).and_then(|of| attribute(of, 0, 1));
        let (device, what) = (of.and_then(|of| number(of, 0)), Some(what.into()));
        Some(Event { device, what, ..Event::new(ChangeKind::Link, ChangeAction::Changed) })
    });
    told.collect()
}

/// The number of the group in which the kernel tells of adapters, by its answer to the request for it.
pub fn adapter_group(bytes: &[u8]) -> Option<u32> {
    let groups = messages(bytes).find_map(|message| attribute(message.body, 4, 7))?;
    let (_, first) = attributes(groups, 0).next()?;
    attribute(first, 0, 2).and_then(|group| number(group, 0))
}

/// The request for that group (linux/genetlink.h).
pub fn request_of_adapter_group() -> Vec<u8> {
    const GENL_ID_CTRL: u16 = 16;
    const GET_FAMILY: u8 = 3;
    let name = b"ethtool\0";
    let head = [&[GET_FAMILY, 1, 0, 0][..], &12u16.to_ne_bytes(), &2u16.to_ne_bytes()].concat();
    request(GENL_ID_CTRL, 0, &[&head[..], name].concat())
}

/// The transaction that ends in these messages: nftables numbers each, and says whose it is.
pub fn ruleset_events(bytes: &[u8]) -> Vec<Event> {
    ruleset_event(bytes).into_iter().collect()
}

fn ruleset_event(bytes: &[u8]) -> Option<Event> {
    let generation = messages(bytes).find(|message| message.kind == NEW_GENERATION)?.body;
    let table = messages(bytes).filter(|message| message.kind != NEW_GENERATION && message.kind & 0xff00 == RULESET);
    let table = table.filter_map(|message| attribute(message.body, 4, 1).map(text)).next();
    let pid = attribute(generation, 4, 2).and_then(|pid| number(pid, 0)).map(u32::from_be);
    Some(Event {
        what: table,
        pid,
        process: attribute(generation, 4, 3).map(text),
        ..Event::new(ChangeKind::Ruleset, ChangeAction::Changed)
    })
}

/// What messages of IPsec's policies and states tell (linux/xfrm.h).
pub fn protection_events(bytes: &[u8]) -> Vec<Event> {
    messages(bytes).filter_map(|message| protection_event(&message)).collect()
}

/// `None` for one that says nothing of either.
fn protection_event(message: &Message) -> Option<Event> {
    use ChangeAction::{Added, Changed, Removed};
    let (action, what) = match message.kind {
        0x10 => (Added, "state"),
        0x11 | 0x1c => (Removed, "state"),
        0x1a => (Changed, "state"),
        0x13 => (Added, "policy"),
        0x14 | 0x1d => (Removed, "policy"),
        0x19 => (Changed, "policy"),
        _ => return None,
    };
    Some(Event { what: Some(format!("xfrm {what}")), ..Event::new(ChangeKind::Rule, action) }.by(message.port))
}

/// A filter for the socket: entries of the neighbour table that the kernel made by itself may be many thousands.
///
/// Classic BPF reads in the network's order what netlink has in the machine's.
pub fn without_what_is_learnt() -> [libc::sock_filter; 11] {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const LOAD_HALF: u16 = 0x28;
    const LOAD_BYTE: u16 = 0x30;
    const IS: u16 = 0x15; // BPF_JMP | BPF_JEQ
    const HAS: u16 = 0x45; // BPF_JMP | BPF_JSET
    const GIVE: u16 = 0x06; // BPF_RET
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let kind = |kind: u16| u32::from(kind.to_be());
    [
        step(LOAD_HALF, 0, 0, 4),
        step(IS, 1, 0, kind(libc::RTM_NEWNEIGH)),
        step(IS, 0, 7, kind(libc::RTM_DELNEIGH)),
        step(LOAD, 0, 0, 12),
        step(IS, 0, 5, 0),
        step(LOAD_BYTE, 0, 0, 16),
        step(IS, 0, 2, libc::AF_BRIDGE as u32),
        step(LOAD_HALF, 0, 0, 24),
        step(HAS, 1, 0, u32::from(IS_STATIC.to_be())),
        step(GIVE, 0, 0, 0),
        step(GIVE, 0, 0, u32::MAX),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::messages::tests::{attribute_of, message};
    use super::*;

    fn told(kind: u16, port: u32, body: &[u8]) -> Option<Told> {
        let bytes = message(kind, port, body);
        messages(&bytes).next().and_then(|message| told_of(&message))
    }

    fn event(told: Option<Told>) -> Event {
        match told {
            Some(Told::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    fn neighbour_body(family: i32, state: u16) -> Vec<u8> {
        let head = [&[family as u8, 0, 0, 0][..], &7u32.to_ne_bytes(), &state.to_ne_bytes(), &[0, 0]].concat();
        [head, attribute_of(1, &[10, 0, 0, 2]), attribute_of(2, &[2, 0, 0, 0, 0, 9])].concat()
    }

    #[test]
    fn neighbours_that_the_kernel_learns_or_forgets_are_no_change() {
        for state in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20] {
            assert_eq!(told(libc::RTM_NEWNEIGH, 0, &neighbour_body(libc::AF_INET, state)), None);
            assert_eq!(told(libc::RTM_DELNEIGH, 0, &neighbour_body(libc::AF_BRIDGE, state)), None);
        }
    }

    #[test]
    fn a_neighbour_that_somebody_sets_or_deletes_is_one() {
        let set = event(told(libc::RTM_NEWNEIGH, 5, &neighbour_body(libc::AF_INET, 0x80)));
        assert_eq!((set.what.as_deref(), set.after.as_deref()), (Some("10.0.0.2"), Some("02:00:00:00:00:09")));
        let gone = event(told(libc::RTM_NEWNEIGH, 5, &neighbour_body(libc::AF_INET, HAS_FAILED)));
        assert_eq!((gone.action, gone.after, gone.device), (ChangeAction::Removed, None, Some(7)));
    }

    #[test]
    fn routes_of_the_kernel_are_no_change_and_those_of_others_are() {
        let body = |protocol, kind| {
            let head = vec![2, 24, 0, 0, 254, protocol, 0, kind, 0, 0, 0, 0];
            [head, attribute_of(1, &[10, 1, 0, 0]), attribute_of(5, &[10, 0, 0, 2])].concat()
        };
        assert_eq!(told(libc::RTM_NEWROUTE, 0, &body(2, 1)), None);
        let route = event(told(libc::RTM_NEWROUTE, 9, &body(3, 1)));
        assert_eq!((route.what.as_deref(), route.after.as_deref()), (Some("10.1.0.0/24"), Some("10.0.0.2")));
        assert_eq!(event(told(libc::RTM_NEWROUTE, 9, &body(4, 6))).after.as_deref(), Some("blackhole"));
        assert_eq!(event(told(libc::RTM_DELROUTE, 9, &body(4, 1))).action, ChangeAction::Removed);
    }

    #[test]
    fn a_setting_is_told_by_itself_and_a_new_interface_tells_all() {
        let body = |device: i32, settings: &[u16]| {
            let settings = settings.iter().flat_map(|kind| attribute_of(*kind, &0u32.to_ne_bytes()));
            [vec![2, 0, 0, 0], attribute_of(1, &device.to_ne_bytes())]
                .concat()
                .into_iter()
                .chain(settings)
                .collect::<Vec<_>>()
        };
        let expected = Told::Setting {
            device: None,
            is_6: false,
            place: FORWARDING,
            name: "net.ipv4.conf.all.forwarding",
            value: 0,
        };
        assert_eq!(told(libc::RTM_NEWNETCONF, 0, &body(-1, &[2])), Some(expected));
        assert_eq!(told(libc::RTM_NEWNETCONF, 0, &body(3, &[2, 3, 4, 5, 6])), None);
        assert_eq!(told(libc::RTM_NEWNETCONF, 0, &body(-2, &[2])), None);
    }

    #[test]
    fn a_transaction_of_nftables_says_whose_it_is() {
        let rule = message(RULESET | 6, 0, &[vec![0; 4], attribute_of(1, b"filter\0")].concat());
        let generation = [vec![0; 4], attribute_of(2, &77u32.to_be_bytes()), attribute_of(3, b"nft\0")].concat();
        let event = ruleset_event(&[rule.clone(), message(NEW_GENERATION, 0, &generation)].concat()).unwrap();
        assert_eq!(
            (event.pid, event.process.as_deref(), event.what.as_deref()),
            (Some(77), Some("nft"), Some("filter"))
        );
        assert_eq!(ruleset_event(&rule), None);
    }

    #[test]
    fn policies_of_ipsec_are_rules() {
        let told = |kind| {
            let bytes = message(kind, 42, &[]);
            protection_event(&messages(&bytes).next().unwrap())
        };
        let event = told(0x13).unwrap();
        assert_eq!((event.kind, event.action, event.pid), (ChangeKind::Rule, ChangeAction::Added, Some(42)));
        assert_eq!(event.what.as_deref(), Some("xfrm policy"));
        assert_eq!(told(0x11).unwrap().action, ChangeAction::Removed);
        assert_eq!(told(0x18), None, "a state that expires");
    }

    #[test]
    fn messages_that_are_cut_off_tell_nothing() {
        for kind in (16..=115).chain([RULESET, NEW_GENERATION]) {
            for length in 0..20 {
                let _ = told(kind, 5, &vec![2; length]);
                let bytes = message(kind, 5, &vec![2; length]);
                let _ = (ruleset_event(&bytes), adapter_events(&bytes), adapter_group(&bytes));
            }
        }
    }
}
