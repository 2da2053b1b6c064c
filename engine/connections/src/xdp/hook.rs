//! Loads the programs of one end, gives them their settings, and attaches them to the driver of an interface.

use std::io;
use std::net::IpAddr;
use std::os::fd::RawFd;

use nicbench_bpf::{
    Area, FirstHop, LARGEST_FRAME, LiveFrames, Loaded, Object, XdpLink, attached_program, find_first_hop,
    interface_facts, interface_index, possible_cpus, set_devices_with_program,
};

use super::records::{
    BODY_BYTES, CPUS, Client, PLANNED, Request, Server, Settings, TIMES_BUCKETS, URGENT, counter, times,
};
use super::rings::{Next, Rings};
use super::sender::{BATCH, BLANK, SLEEPING_RATE, Senders};
use crate::FILLING;
use crate::client::tally::Segments;

/// `bpf/connections.bpf.c`, compiled when this program was built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/connections.o"));
/// Copies of the times, which CPUs take in turn so that few write to one.
const MOST_COPIES: usize = 16;
/// Bytes of the headers of Ethernet, IPv4, IPv6 and TCP.
const ETHERNET: u32 = 14;
const IPV4: u32 = 20;
const IPV6: u32 = 40;
const TCP: u32 = 20;
/// Of a VLAN.
const TAG: u32 = 4;
/// In place of its number: there is one.
const TAGGED: u32 = 0x1_0000;
/// Maps of this interface, and their entries: one more than segments that they send, or one for a frame itself.
const DEVICES: [(&str, u32); 4] = [("devices", 1), ("one_copy", 2), ("two_copies", 3), ("four_copies", 5)];

/// An interface, and the VLAN of it (IEEE 802.1Q) in which connections are.
#[derive(Debug, Clone)]
pub struct Link {
    pub interface: String,
    pub vlan: Option<u16>,
}

/// An end of the connections, and the size of its table.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// The client; the numbers are those of its records and of its sending threads.
    Client { records: u32, senders: usize },
    /// The server; the number is that of its buckets.
    Server(u32),
}

impl End {
    /// What it does with frames, sends by the clock, and writes into copies; the first three programs are its own.
    fn programs(self) -> [&'static str; 6] {
        let client = ["client", "send_client", "copy_client"];
        let server = ["server", "send_server", "copy_server"];
        let both = match self {
            Self::Client { .. } => [client, server],
            Self::Server(_) => [server, client],
        };
        std::array::from_fn(|at| both[at / 3][at % 3])
    }
}

/// The programs of one end; they leave the interface when this is dropped, or the process ends.
#[derive(Debug)]
pub struct Hook {
    loaded: Loaded,
    link: Option<XdpLink>,
    interface: u32,
    /// The program that sends by the clock, and that which answers frames.
    pub(super) sender: RawFd,
    pub(super) receiver: RawFd,
    /// The settings that the programs get with the next [`Hook::publish`].
    pub wanted: Settings,
    settings: Area<Settings>,
    pub rings: Rings,
    /// Of each CPU.
    counters: Area<u64>,
    cpus: usize,
    times: Area<u64>,
    copies: usize,
}

impl Hook {
    /// Loads the programs of an end for an interface, or for a VLAN of it, and our address there.
    ///
    /// # Errors
    /// The interface is missing or has an XDP program already, or the kernel refuses the programs.
    pub fn load(on: &Link, end: End, own: IpAddr) -> io::Result<Self> {
        let device = &on.interface;
        let interface = index_of(device)?;
        let facts = interface_facts(device)?;
        let tag = on.vlan.map_or(0, |vlan| TAGGED | u32::from(vlan));
        if let Some(program) = attached_program(interface) {
            let what =
                format!("{device} has an XDP program already (id {program}): next, ip link set dev {device} xdp off");
            return Err(io::Error::other(what));
        }
        let mut object = Object::open(PROGRAM)?;
        let cpus = possible_cpus().clamp(1, CPUS);
        let copies = cpus.next_power_of_two().min(MOST_COPIES);
        let is_ordered = u32::from(cfg!(target_arch = "x86_64"));
        let constants = [u32::from(own.is_ipv6()), tag, copies as u32, is_ordered].map(u32::to_ne_bytes);
        object.set_constants(".rodata.constants", constants.as_flattened())?;
        object.set_entries("times_map", (copies * times::KINDS * TIMES_BUCKETS) as u32)?;
        let mut senders = 1;
        match end {
            End::Client { records, senders: wanted } => {
                senders = wanted;
                object.set_entries("clients", records)?;
                object.set_entries("planned_map", (PLANNED * senders) as u32)?;
                object.set_entries("urgent_map", (URGENT * senders) as u32)?;
            }
            End::Server(buckets) => {
                let records = buckets * super::records::RECORDS_A_BUCKET as u32;
                object.set_entries("servers", records)?;
                if own.is_ipv6() {
                    object.set_entries("peers", records)?;
                }
            }
        }
        let [receiver, sender, copier, left_out @ ..] = end.programs();
        left_out.into_iter().try_for_each(|name| object.leave_out(name))?;
        let loaded = object.load().map_err(|error| {
            explain(&error, "the kernel takes no programs for connections (Linux 5.18 and root are needed)")
        })?;
        for (map, entries) in DEVICES {
            set_devices_with_program(loaded.map(map)?, entries, interface, loaded.program(copier)?)?;
        }
        // A frame that the kernel makes is no longer than this, whatever the MTU.
        let packet = facts.mtu_bytes.min(LARGEST_FRAME as u32 - ETHERNET - TAG);
        let segment_bytes = packet - TCP - if own.is_ipv6() { IPV6 } else { IPV4 };
        let wanted = Settings { seed: seed(), own: raw(own), own_mac: facts.mac, segment_bytes, ..Settings::default() };
        Ok(Self {
            link: None,
            interface,
            sender: loaded.program(sender)?,
            receiver: loaded.program(receiver)?,
            wanted,
            settings: Area::new(loaded.map(".bss.settings")?, 1)?,
            rings: Rings::new(&loaded, senders, matches!(end, End::Client { .. }))?,
            counters: Area::new(loaded.map(".bss.counters")?, cpus * counter::PLACES)?,
            cpus,
            times: Area::new(loaded.map("times_map")?, copies * times::KINDS * TIMES_BUCKETS)?,
            copies,
            loaded,
        })
    }

    /// Where a client's frames go.
    pub fn set_peer(&mut self, to: IpAddr, hop: FirstHop) {
        self.wanted.peer = raw(to);
        (self.wanted.own_mac, self.wanted.peer_mac) = (hop.own_mac, hop.peer_mac);
    }

    /// Publishes the settings and attaches the programs, which get every frame from then on.
    ///
    /// # Errors
    /// The driver has no native XDP.
    pub fn attach(&mut self) -> io::Result<()> {
        self.settings.set(0, self.wanted);
        let link = XdpLink::attach(self.receiver, self.interface)
            .map_err(|error| explain(&error, "the driver of the interface takes no XDP program"))?;
        self.link = Some(link);
        Ok(())
    }

    /// The requests of objects.
    pub fn set_requests(&mut self, requests: &[Request]) -> io::Result<()> {
        let mut area = Area::new(self.loaded.map(".bss.requests")?, requests.len())?;
        area.write(0, requests);
        Ok(())
    }

    /// What bodies are filled with.
    pub fn fill_bodies(&mut self) -> io::Result<()> {
        let mut area = Area::<[u8; 16]>::new(self.loaded.map(".bss.body")?, BODY_BYTES / 16)?;
        area.write(0, &[[FILLING; 16]; BODY_BYTES / 16]);
        Ok(())
    }

    /// The client's connections.
    pub fn clients(&self, records: usize) -> io::Result<Area<Client>> {
        Area::new(self.loaded.map("clients")?, records)
    }

    /// The server's connections.
    pub fn servers(&self, records: usize) -> io::Result<Area<Server>> {
        Area::new(self.loaded.map("servers")?, records)
    }

    /// Gives the programs their settings and what was added to the rings.
    pub fn publish(&mut self) {
        self.settings.set(0, self.wanted);
        self.rings.publish();
    }

    /// Sends what is in the ring of what is sent at once, in this thread.
    ///
    /// # Errors
    /// The kernel does not run the program.
    pub fn send_urgent(&mut self) -> io::Result<()> {
        self.rings.publish();
        let waiting = self.rings.waiting(0);
        if waiting == 0 {
            return Ok(());
        }
        LiveFrames { runs: waiting, batch: BATCH }.run(self.sender, &BLANK)
    }

    /// Starts the threads that send what is due, at most `rate` a second; they end when the value is dropped.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start_senders(&self, rate: f64) -> io::Result<Senders> {
        let senders = 0..self.rings.senders();
        let sleeps = rate <= SLEEPING_RATE * senders.len() as f64;
        let next = senders.map(|sender| sleeps.then(|| Next::new(&self.loaded, sender)).transpose());
        Senders::start(self.sender, next.collect::<io::Result<_>>()?)
    }

    /// One count, of all CPUs.
    pub fn count(&self, which: usize) -> u64 {
        (0..self.cpus).map(|cpu| self.counters.get(cpu * counter::PLACES + which)).sum()
    }

    #[cfg(test)]
    pub fn forget_counts(&mut self) {
        self.counters.clear(0..self.cpus * counter::PLACES);
    }

    /// All counts.
    pub fn counts(&self) -> Vec<u64> {
        (0..counter::COUNTERS).map(|which| self.count(which)).collect()
    }

    /// What became of segments.
    pub fn segments(&self) -> Segments {
        Segments {
            sent: self.count(counter::SENT),
            resent: self.count(counter::RESENT),
            damaged: self.count(counter::DAMAGED),
            repeated: self.count(counter::REPEATED),
            not_expected: self.count(counter::NOT_EXPECTED),
        }
    }

    /// The times of one kind in nanoseconds, each with its number.
    pub fn times(&self, kind: usize) -> impl Iterator<Item = (u64, u64)> {
        let copies = (0..self.copies).flat_map(move |copy| {
            let first = (copy * times::KINDS + kind) * TIMES_BUCKETS;
            self.times.copy(first..first + TIMES_BUCKETS).into_iter().enumerate()
        });
        copies.filter(|&(_, count)| count > 0).map(|(bucket, count)| (middle_of(bucket), count))
    }
}

/// Finds out where frames to this address go by an interface, and from which of ours.
///
/// # Errors
/// Nobody answers for the address, or another interface leads to it.
pub fn find_peer(device: &str, to: IpAddr) -> io::Result<FirstHop> {
    find_first_hop(index_of(device)?, to).map_err(|error| {
        explain(&error, &format!("no frame to {to} leaves by this interface: no route, or nobody answers for it"))
    })
}

fn index_of(device: &str) -> io::Result<u32> {
    interface_index(device).map_err(|error| explain(&error, &format!("the interface {device}")))
}

/// The middle of a bucket's times, in nanoseconds.
fn middle_of(bucket: usize) -> u64 {
    let shift = (bucket / 1024).saturating_sub(1);
    let first = ((bucket - shift * 1024) as u64) << shift;
    first + (1 << shift) / 2
}

/// An address as the programs have it.
fn raw(address: IpAddr) -> [u8; 16] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    bytes
}

fn seed() -> u32 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    time.subsec_nanos() ^ time.as_secs() as u32 ^ std::process::id() << 16
}

fn explain(error: &io::Error, what: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::middle_of;

    #[test]
    fn a_bucket_is_a_thousandth_wide_at_most() {
        assert_eq!(middle_of(0), 0);
        assert_eq!(middle_of(2047), 2047);
        assert_eq!(middle_of(2048), 2049);
        assert_eq!(middle_of(3071), 4095);
        assert_eq!(middle_of(3072), 4098);
    }
}
