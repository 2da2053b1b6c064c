//! What others change on the path of frames while they pass: interfaces, addresses, routes, rules, neighbours, queues,
//! filters, nftables, BPF programs and settings of network namespaces.
//!
//! The kernel tells of most of it at once (rtnetlink, nfnetlink), so that what is undone a moment later is seen too; what
//! it does not tell is read at both ends and compared, rules of iptables also when one of its programs ends. What the kernel does by itself, such as learning neighbours, is
//! not told, nor what processes of the controller do.

mod events;
mod links;
mod messages;
mod network;

use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nicbench_protocol::{Change, Changes, Unwatched, WatchedNetwork};

use network::{Network, Window};

use crate::sys::clock::monotonic_ns;
use crate::sys::xtables::Notice;

/// So many changes are told; of further ones the number is.
const MOST_TOLD: usize = 64;

/// What is watched, and what changed there.
pub struct Watch {
    networks: Vec<Network>,
    /// `None`: nothing is watched now.
    window: Option<Window>,
    iptables: Option<Notice>,
    proc: PathBuf,
    mark: String,
}

impl Watch {
    /// Opens the sockets of every network; those that cannot be watched, or not wholly, come with the reason.
    pub fn open(asked: &[WatchedNetwork], proc: PathBuf, mark: String) -> (Self, Vec<Unwatched>) {
        let (mut networks, mut unwatched) = (Vec::new(), Vec::new());
        for wanted in asked {
            let because = |missing| Unwatched { network: wanted.name.clone(), missing };
            match Network::open(wanted) {
                Ok(network) => {
                    unwatched.extend(network.missing().map(because));
                    networks.push(network);
                }
                Err(error) => unwatched.push(because(error.to_string())),
            }
        }
        (Self { networks, window: None, iptables: Notice::open().ok(), proc, mark }, unwatched)
    }

    /// The descriptors on which changes are told; none while nothing is watched.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> {
        let is_watching = self.window.is_some();
        let notice = self.iptables.iter().map(AsRawFd::as_raw_fd);
        self.networks.iter().flat_map(Network::descriptors).chain(notice).filter(move |_| is_watching)
    }

    /// Watches from now on. What was told before is forgotten.
    pub fn begin(&mut self) {
        self.networks.iter_mut().for_each(Network::begin);
        self.iptables.as_mut().map(Notice::take);
        self.window = Some(Window::new(self.proc.clone(), self.mark.clone()));
    }

    /// Takes what was told since.
    pub fn take(&mut self) {
        if let Some(window) = &mut self.window {
            self.networks.iter_mut().for_each(|network| network.take(window));
            if self.iptables.as_mut().is_some_and(Notice::take) {
                self.networks.iter_mut().for_each(|network| network.compare_rules(Some(monotonic_ns()), window));
            }
        }
    }

    /// Watches no more; what changed.
    pub fn end(&mut self) -> Changes {
        self.take();
        let Some(mut window) = self.window.take() else { return Changes::default() };
        self.networks.iter_mut().for_each(|network| network.compare(&mut window));
        let more = window.found.len().saturating_sub(MOST_TOLD) as u64 + window.more;
        let changes: Vec<Change> = window.found.into_iter().take(MOST_TOLD).collect();
        Changes { changes, more, overflowed: window.overflowed }
    }
}
