//! Rules of iptables where it is not nftables' (linux/netfilter_ipv4/ip_tables.h), of the network namespace of the
//! caller; and the file that its programs lock, by which they are noticed.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const GET_INFO: libc::c_int = 64;
const GET_ENTRIES: libc::c_int = 65;
const NAME_BYTES: usize = 32;
const INFO_BYTES: usize = 84;
const SIZE_AT: usize = 80;
/// `struct ipt_get_entries`, before its entries.
const HEAD_BYTES: usize = 40;
const LOCK: &[u8] = b"xtables.lock\0";
const MOST_NOTICED_BYTES: usize = 4096;

/// Where entries of a family have what.
struct Family {
    names: &'static str,
    domain: libc::c_int,
    level: libc::c_int,
    next_at: usize,
    /// What the kernel counts in them.
    counted: std::ops::Range<usize>,
}

const FAMILIES: [(&str, Family); 2] = [
    (
        "ip",
        Family {
            names: "/proc/thread-self/net/ip_tables_names",
            domain: libc::AF_INET,
            level: libc::IPPROTO_IP,
            next_at: 90,
            counted: 92..112,
        },
    ),
    (
        "ip6",
        Family {
            names: "/proc/thread-self/net/ip6_tables_names",
            domain: libc::AF_INET6,
            level: libc::IPPROTO_IPV6,
            next_at: 142,
            counted: 144..168,
        },
    ),
];

/// A number for the rules of each table there is, which is another where they are. A table that nobody asked for yet
/// is not asked for: that alone would make the kernel look at every frame.
pub fn rules() -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (family, layout) in &FAMILIES {
        let names = std::fs::read_to_string(layout.names).unwrap_or_default();
        for name in names.lines() {
            found.extend(rules_of(name, layout).map(|rules| (format!("{family} {name}"), rules)));
        }
    }
    found
}

fn rules_of(name: &str, family: &Family) -> Option<u64> {
    // SAFETY: makes a descriptor, which nobody else has.
    let descriptor = unsafe { libc::socket(family.domain, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_RAW) };
    if descriptor < 0 {
        return None;
    }
    // SAFETY: it is open and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let ask = |option, mut told: Vec<u8>| {
        told.get_mut(..name.len()).filter(|place| place.len() < NAME_BYTES)?.copy_from_slice(name.as_bytes());
        let mut length = told.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `told`, and reads its name; both outlive the call.
        let result = unsafe {
            libc::getsockopt(socket.as_raw_fd(), family.level, option, told.as_mut_ptr().cast(), &raw mut length)
        };
        (result == 0).then_some(told)
    };
    let info = ask(GET_INFO, vec![0; INFO_BYTES])?;
    let size = u32::from_ne_bytes(info[SIZE_AT..].try_into().ok()?);
    let mut asked = vec![0; HEAD_BYTES + size as usize];
    asked[NAME_BYTES..NAME_BYTES + 4].copy_from_slice(&size.to_ne_bytes());
    Some(number_of(ask(GET_ENTRIES, asked)?.get(HEAD_BYTES..)?, family))
}

fn number_of(mut entries: &[u8], family: &Family) -> u64 {
    let mut hasher = DefaultHasher::new();
    while let Some(entry) = next_entry(entries, family) {
        hasher.write(&entry[..family.counted.start]);
        hasher.write(&entry[family.counted.end..]);
        entries = &entries[entry.len()..];
    }
    hasher.finish()
}

fn next_entry<'e>(entries: &'e [u8], family: &Family) -> Option<&'e [u8]> {
    let length = entries.get(family.next_at..family.next_at + 2)?;
    let length = usize::from(u16::from_ne_bytes(length.try_into().ok()?));
    entries.get(..length).filter(|entry| entry.len() >= family.counted.end)
}

/// Notices programs of iptables when they end.
pub struct Notice {
    file: File,
}

impl Notice {
    /// Looks at the folder in which they have their lock.
    pub fn open() -> io::Result<Self> {
        // SAFETY: makes a descriptor, which nobody else has.
        let descriptor = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it is open and has no other owner.
        let file = unsafe { File::from_raw_fd(descriptor) };
        // SAFETY: reads the path, which outlives the call.
        let watched = unsafe { libc::inotify_add_watch(file.as_raw_fd(), c"/run".as_ptr(), libc::IN_CLOSE) };
        if watched < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { file }) }
    }

    /// Whether one ended since it was last asked.
    pub fn take(&mut self) -> bool {
        let (mut buffer, mut is_one) = ([0; MOST_NOTICED_BYTES], false);
        while let Ok(count @ 1..) = self.file.read(&mut buffer) {
            is_one |= buffer[..count].windows(LOCK.len()).any(|words| words == LOCK);
        }
        is_one
    }
}

impl AsRawFd for Notice {
    fn as_raw_fd(&self) -> i32 {
        self.file.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(counted: u8, target: u8) -> Vec<u8> {
        let mut entry = [0; 152];
        entry[90..92].copy_from_slice(&152u16.to_ne_bytes());
        entry[96..112].fill(counted);
        entry[120] = target;
        entry.repeat(2)
    }

    #[test]
    fn rules_are_others_where_they_differ_but_for_what_they_count() {
        let number = |counted, target| number_of(&entries(counted, target), &FAMILIES[0].1);
        assert_eq!(number(1, 5), number(2, 5));
        assert_ne!(number(1, 5), number(1, 6));
        let one = &entries(1, 5)[..152];
        assert_ne!(number_of(one, &FAMILIES[0].1), number(1, 5));
    }

    #[test]
    fn entries_that_are_cut_off_end() {
        for length in 0..304 {
            number_of(&entries(1, 5)[..length], &FAMILIES[0].1);
        }
    }
}
