//! One network namespace that is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use nicbench_protocol::{Change, ChangeAction, ChangeKind, WatchedNetwork};

use super::events::{
    Event, Told, adapter_events, adapter_group, address_of, protection_events, request_of_adapter_group,
    ruleset_events, told_of,
};
use super::links::{Difference, Link, action_of, index_of, is_end, request_of_all, request_of_links};
use super::messages::messages;
use crate::open_file::{Buffer, OpenFile};
use crate::sys::bpf::{TCX_PLACES, tcx_revision};
use crate::sys::clock::monotonic_ns;
use crate::sys::namespace;
use crate::sys::netlink::Netlink;
use crate::sys::xtables;

/// Links, neighbours, traffic control, addresses, routes, rules, settings and next hops (linux/rtnetlink.h).
const GROUPS: [u32; 13] = [1, 3, 4, 5, 7, 8, 9, 11, 19, 24, 25, 32, 33];
const RULESET_GROUPS: [u32; 1] = [7];
/// States and policies of IPsec (linux/xfrm.h), of which a policy can stop frames.
const PROTECTION_GROUPS: [u32; 2] = [3, 4];
const OWN: &str = "/proc/thread-self/ns/net";
/// Settings of the whole namespace that can stop frames, and of which the kernel does not tell.
const SETTINGS: [&str; 16] = [
    "ipv4/conf/all/accept_local",
    "ipv4/conf/all/arp_announce",
    "ipv4/conf/all/arp_filter",
    "ipv4/conf/all/arp_ignore",
    "ipv4/conf/all/disable_policy",
    "ipv4/conf/all/disable_xfrm",
    "ipv4/conf/all/route_localnet",
    "ipv4/conf/all/src_valid_mark",
    "ipv4/fib_multipath_hash_policy",
    "ipv6/conf/all/disable_ipv6",
    "netfilter/nf_conntrack_max",
    "netfilter/nf_conntrack_tcp_be_liberal",
    "netfilter/nf_conntrack_tcp_loose",
    "bridge/bridge-nf-call-arptables",
    "bridge/bridge-nf-call-ip6tables",
    "bridge/bridge-nf-call-iptables",
];
const MOST_FOUND: usize = 4096;

/// The time in which changes count.
pub struct Window {
    began_ns: u64,
    proc: PathBuf,
    mark: String,
    pub found: Vec<Change>,
    /// Beyond those found.
    pub more: u64,
    pub overflowed: Vec<String>,
}

impl Window {
    /// It begins now. Processes are looked for in `proc`; those whose environment has the `mark` are the controller's.
    pub fn new(proc: PathBuf, mark: String) -> Self {
        Self { began_ns: monotonic_ns(), proc, mark, found: vec![], more: 0, overflowed: vec![] }
    }

    fn put(&mut self, mut change: Change) {
        if let Some(pid) = change.pid {
            let folder = self.proc.join(pid.to_string());
            if crate::census::has_mark(&folder, &self.mark) {
                return;
            }
            if change.process.is_none() {
                let name = std::fs::read(folder.join("comm")).ok();
                change.process = name.map(|name| crate::text::name(name.trim_ascii()));
            }
        }
        if is_said(&mut self.found, &change) {
            return;
        }
        if self.found.len() < MOST_FOUND { self.found.push(change) } else { self.more += 1 }
    }
}

/// Whether the change is part of one that is known: forwarding of all interfaces is told of each, too.
fn is_said(found: &mut Vec<Change>, change: &Change) -> bool {
    let (ChangeKind::Setting, Some(what)) = (change.kind, change.what.as_deref()) else { return false };
    let part_of = |of_all: &Change, of_one: &Change| {
        let [all, one] = [of_all, of_one].map(|change| change.what.as_deref().unwrap_or_default());
        let middle = all.split_once(".all.");
        of_all.network == of_one.network
            && of_all.after == of_one.after
            && of_one.device.is_some()
            && middle.is_some_and(|(head, tail)| one.starts_with(head) && one.ends_with(tail))
    };
    if what.contains(".all.") {
        found.retain(|earlier| !part_of(change, earlier));
        return false;
    }
    found.iter().any(|earlier| part_of(earlier, change))
}

struct Setting {
    name: &'static str,
    file: OpenFile,
    value: Option<String>,
}

/// What messages tell.
type Hear = fn(&[u8]) -> Vec<Event>;

/// A network namespace that is watched, and how it was last.
pub struct Network {
    name: String,
    path: String,
    devices: Vec<String>,
    routing: Netlink,
    /// Those that the kernel has of nftables, IPsec and adapters, and what each tells.
    others: Vec<(Netlink, Hear)>,
    missing: Option<String>,
    asking: Netlink,
    settings: Vec<Setting>,
    links: BTreeMap<u32, Link>,
    addresses: BTreeSet<(u32, String)>,
    tcx: BTreeMap<(u32, &'static str), (u64, u32)>,
    rules: BTreeMap<String, u64>,
    buffer: Vec<u8>,
    files: Buffer,
}

impl Network {
    pub fn open(wanted: &WatchedNetwork) -> io::Result<Self> {
        let path = wanted.path.clone().unwrap_or_else(|| OWN.into());
        let network = namespace::within(Path::new(&path), || {
            let routing = Netlink::open(libc::NETLINK_ROUTE, &GROUPS)?;
            routing.filter(&mut super::events::without_what_is_learnt())?;
            let ruleset = Netlink::open(libc::NETLINK_NETFILTER, &RULESET_GROUPS);
            let missing = ruleset.as_ref().err().map(|error| format!("changes of nftables cannot be seen: {error}"));
            let protection = Netlink::open(libc::NETLINK_XFRM, &PROTECTION_GROUPS);
            let others =
                [(ruleset, ruleset_events as Hear), (protection, protection_events), (open_adapters(), adapter_events)];
            let others = others.into_iter().filter_map(|(socket, hear)| Some((socket.ok()?, hear))).collect();
            let asking = Netlink::open(libc::NETLINK_ROUTE, &[])?;
            let settings = SETTINGS.iter().filter_map(|name| {
                let file = OpenFile::open(&Path::new("/proc/sys/net").join(name)).ok()?;
                Some(Setting { name, file, value: None })
            });
            Ok((routing, others, missing, asking, settings.collect()))
        });
        let (routing, others, missing, asking, settings) =
            network.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        Ok(Self {
            name: wanted.name.clone(),
            path,
            devices: wanted.devices.clone(),
            routing,
            others,
            missing,
            asking,
            settings,
            links: BTreeMap::new(),
            addresses: BTreeSet::new(),
            tcx: BTreeMap::new(),
            rules: BTreeMap::new(),
            buffer: vec![0; 64 << 10],
            files: Buffer::default(),
        })
    }

    /// What of it cannot be seen.
    pub fn missing(&self) -> Option<String> {
        self.missing.clone()
    }

    fn sockets(&self) -> impl Iterator<Item = &Netlink> {
        std::iter::once(&self.routing).chain(self.others.iter().map(|(socket, _)| socket))
    }

    /// Where it tells of changes.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        use std::os::fd::AsRawFd;
        self.sockets().map(AsRawFd::as_raw_fd)
    }

    /// Forgets what was told, and looks how everything is.
    pub fn begin(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for socket in self.sockets() {
            while !matches!(socket.receive(&mut buffer, false), Err(error) if has_no_more(&error)) {}
        }
        self.buffer = buffer;
        self.links = self.ask_links().unwrap_or_default();
        self.addresses = self.ask_addresses().unwrap_or_default();
        self.tcx = self.ask_tcx();
        self.rules = self.ask_rules();
        for setting in &mut self.settings {
            setting.value = value_of(&setting.file, &mut self.files);
        }
    }

    /// Takes what was told.
    pub fn take(&mut self, window: &mut Window) {
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let told = match self.routing.receive(&mut buffer, false) {
                Ok(told) => told,
                Err(error) if has_no_more(&error) => break,
                Err(error) => {
                    self.note_overflow(window, &error);
                    continue;
                }
            };
            for message in messages(told) {
                let Some(told) = told_of(&message) else { continue };
                self.hear(told, message.port, window);
            }
        }
        for (socket, hear) in &self.others {
            loop {
                match socket.receive(&mut buffer, false) {
                    Ok(told) => hear(told).into_iter().for_each(|event| self.put(event, window)),
                    Err(error) if has_no_more(&error) => break,
                    Err(error) => self.note_overflow(window, &error),
                }
            }
        }
        self.buffer = buffer;
    }

    /// Looks again, and holds what is now against what is known.
    pub fn compare(&mut self, window: &mut Window) {
        if let Some(now) = self.ask_links() {
            for link in now.into_values() {
                self.hear_link(link, None, window);
            }
        }
        let (before, after) = (std::mem::take(&mut self.tcx), self.ask_tcx());
        let places: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
        for place in places {
            let (was, is) = (before.get(&place), after.get(&place));
            // An interface that is gone was told of.
            if was != is && self.links.contains_key(&place.0) {
                let event = Event {
                    device: Some(place.0),
                    what: Some(place.1.into()),
                    at_ns: None,
                    ..Event::new(ChangeKind::Tcx, action_of(&was, &is))
                };
                self.put(event, window);
            }
        }
        self.compare_rules(None, window);
        for index in 0..self.settings.len() {
            let setting = &mut self.settings[index];
            let after = value_of(&setting.file, &mut self.files);
            let before = std::mem::replace(&mut setting.value, after.clone());
            if before != after {
                let event = Event {
                    what: Some(format!("net.{}", setting.name.replace('/', "."))),
                    before,
                    after,
                    at_ns: None,
                    ..Event::new(ChangeKind::Setting, ChangeAction::Changed)
                };
                self.put(event, window);
            }
        }
    }

    /// Looks again at the rules of iptables that are not nftables'.
    pub fn compare_rules(&mut self, at_ns: Option<u64>, window: &mut Window) {
        let after = self.ask_rules();
        let before = std::mem::replace(&mut self.rules, after);
        let tables: BTreeSet<_> = before.keys().chain(self.rules.keys()).collect();
        for table in tables.into_iter().filter(|table| before.get(*table) != self.rules.get(*table)) {
            let what = Some(table.clone());
            self.put(Event { what, at_ns, ..Event::new(ChangeKind::Iptables, ChangeAction::Changed) }, window);
        }
    }

    fn hear(&mut self, told: Told, port: u32, window: &mut Window) {
        match told {
            Told::Link(link) => self.hear_link(link, Some(monotonic_ns()), window),
            Told::Port { device, options } => {
                if let Some(mut link) = self.links.get(&device).cloned() {
                    link.options = options;
                    self.hear_link(link, Some(monotonic_ns()), window);
                }
            }
            Told::LinkGone(index) => {
                if let Some(link) = self.links.remove(&index) {
                    let event = Event::new(ChangeKind::Link, ChangeAction::Removed);
                    self.put_of(event, Some(link.name), window);
                }
            }
            Told::Address { device, address, is_gone } => {
                let key = (device, address.clone());
                // The kernel makes one for itself wherever a link comes up, a second or two later.
                let is_made = !is_gone && key.1.starts_with("fe80:");
                let is_new = if is_gone { self.addresses.remove(&key) } else { self.addresses.insert(key) };
                if is_new && !is_made {
                    let action = if is_gone { ChangeAction::Removed } else { ChangeAction::Added };
                    let event =
                        Event { device: Some(device), what: Some(address), ..Event::new(ChangeKind::Address, action) };
                    self.put(event.by(port), window);
                }
            }
            Told::Setting { device: Some(device), is_6, place, value, .. } => {
                // An interface that is being made has no message of its own yet.
                let difference = self.links.get_mut(&device).and_then(|link| link.set(is_6, place, value));
                if let Some(difference) = difference {
                    self.put(Event { device: Some(device), ..Event::of(difference) }, window);
                }
            }
            Told::Setting { device: None, name, value, .. } => {
                let event = Event {
                    what: Some(name.into()),
                    after: Some(value.to_string()),
                    ..Event::new(ChangeKind::Setting, ChangeAction::Changed)
                };
                self.put(event, window);
            }
            Told::Event(event) => self.put(event.by(port), window),
        }
    }

    /// An interface that is new carries nothing yet.
    fn hear_link(&mut self, link: Link, at_ns: Option<u64>, window: &mut Window) {
        let (index, name) = (link.index, link.name.clone());
        let Some(before) = self.links.insert(index, link) else { return };
        for difference in self.links[&index].differences(&before) {
            let event = Event { at_ns, ..Event::of(difference) };
            self.put_of(event, Some(name.clone()), window);
        }
    }

    fn put(&self, event: Event, window: &mut Window) {
        let device = event.device.map(|device| self.links.get(&device).map(|link| link.name.clone()));
        // Of an interface that is gone, or is not this window's, nothing counts where only some do.
        if matches!(device, Some(None)) && !self.devices.is_empty() {
            return;
        }
        self.put_of(event, device.flatten(), window);
    }

    fn put_of(&self, event: Event, device: Option<String>, window: &mut Window) {
        let counts = |name: &String| self.devices.is_empty() || self.devices.contains(name);
        if !device.as_ref().is_none_or(counts) {
            return;
        }
        window.put(Change {
            network: self.name.clone(),
            kind: event.kind,
            action: event.action,
            device,
            what: event.what,
            before: event.before,
            after: event.after,
            after_ns: event.at_ns.map(|at_ns| at_ns.saturating_sub(window.began_ns)),
            pid: event.pid,
            process: event.process,
        });
    }

    fn note_overflow(&self, window: &mut Window, error: &io::Error) {
        if error.kind() != io::ErrorKind::Interrupted && !window.overflowed.contains(&self.name) {
            window.overflowed.push(self.name.clone());
        }
    }

    fn ask_links(&mut self) -> Option<BTreeMap<u32, Link>> {
        let mut links = BTreeMap::new();
        self.ask(&request_of_links(), |body| {
            links.extend(Link::of(body).map(|link| (link.index, link)));
        })?;
        Some(links)
    }

    fn ask_addresses(&mut self) -> Option<BTreeSet<(u32, String)>> {
        let mut addresses = BTreeSet::new();
        self.ask(&request_of_all(libc::RTM_GETADDR, &[0; 8]), |body| {
            addresses.extend(index_of(body).zip(address_of(body)));
        })?;
        Some(addresses)
    }

    /// Asks for all of something; `None` where the kernel does not answer.
    fn ask(&mut self, request: &[u8], mut each: impl FnMut(&[u8])) -> Option<()> {
        self.asking.ask(request).ok()?;
        loop {
            let told = match self.asking.receive(&mut self.buffer, true) {
                Ok(told) => told,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            for message in messages(told) {
                if is_end(message.kind) {
                    return Some(());
                }
                each(message.body);
            }
        }
    }

    fn ask_tcx(&self) -> BTreeMap<(u32, &'static str), (u64, u32)> {
        let found = namespace::within(Path::new(&self.path), || {
            let places = self.links.keys().flat_map(|link| TCX_PLACES.iter().map(move |place| (*link, place)));
            Ok(places.filter_map(|(link, (name, place))| Some(((link, *name), tcx_revision(link, *place)?))).collect())
        });
        found.unwrap_or_default()
    }

    fn ask_rules(&self) -> BTreeMap<String, u64> {
        namespace::within(Path::new(&self.path), || Ok(xtables::rules())).unwrap_or_default()
    }
}

/// A socket that hears of adapters.
fn open_adapters() -> io::Result<Netlink> {
    let (socket, mut buffer) = (Netlink::open(libc::NETLINK_GENERIC, &[])?, vec![0; 16 << 10]);
    socket.ask(&request_of_adapter_group())?;
    let group = adapter_group(socket.receive(&mut buffer, true)?).ok_or(io::ErrorKind::NotFound)?;
    socket.join(group)?;
    Ok(socket)
}

impl Event {
    fn of(difference: Difference) -> Self {
        let Difference { kind, action, what, before, after } = difference;
        Self { what: Some(what), before, after, ..Self::new(kind, action) }
    }
}

fn value_of(file: &OpenFile, buffer: &mut Buffer) -> Option<String> {
    file.read_value(buffer).ok().map(|value| crate::text::name(value.trim_ascii()))
}

fn has_no_more(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
