//! Answers to those who look for a port's addresses, beside the programs in the kernel: these pass on what is not the
//! test's, and a thread with a socket answers it. No frame of the test comes here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{EngineError, ErrorKind};
use crate::sys::link_socket::LinkSocket;
use crate::traffic::allowance::Allowance;
use crate::traffic::neighbours::{Addresses, Protocol, answer, may_ask};

/// The rate beyond which questions are not answered any more: a flood of questions must not become one of answers.
const ALLOWANCE: Allowance = Allowance::new(1000.0, 256.0);
/// How long the end may take.
const PATIENCE: Duration = Duration::from_millis(50);
/// The thread rests after this number of frames, so that others can use its CPU.
const LOOKED_AT_ONCE: u32 = 64;
const REST: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct Counts {
    arp: AtomicU64,
    neighbour_discovery: AtomicU64,
    unanswered: AtomicU64,
    is_over: AtomicBool,
}

/// The thread of one port.
#[derive(Debug)]
pub struct Answering {
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Answering {
    /// Answers for `addresses` at an interface, from now on until it is dropped. `port` is named in errors.
    ///
    /// # Errors
    /// Where this process may not open the socket.
    pub fn start(port: &str, interface: u32, addresses: Addresses) -> Result<Self, EngineError> {
        let socket = LinkSocket::open(interface, PATIENCE).map_err(|error| {
            let message = format!("port {port}: the socket by which it answers its neighbours: {error}");
            EngineError::new(ErrorKind::Port, message, "run it with the rights of root (CAP_NET_RAW)")
        })?;
        let counts = Arc::new(Counts::default());
        let own = Arc::clone(&counts);
        Ok(Self { counts, thread: Some(thread::spawn(move || answer_all(socket, &addresses, &own))) })
    }

    /// What it did, since it began.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let Counts { arp, neighbour_discovery, unanswered, .. } = &*self.counts;
        [("arp_answered", arp), ("nd_answered", neighbour_discovery), ("neighbours_unanswered", unanswered)]
            .map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed)))
            .into()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.counts.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer_all(mut socket: LinkSocket, addresses: &Addresses, counts: &Counts) {
    let (begun, mut allowance, mut looked_at) = (Instant::now(), ALLOWANCE, 0);
    while !counts.is_over.load(Ordering::Relaxed) {
        let Some(frame) = socket.receive() else { continue };
        looked_at += 1;
        if looked_at % LOOKED_AT_ONCE == 0 {
            thread::sleep(REST);
        }
        let Some((protocol, reply)) = may_ask(&frame).then(|| answer(&frame, addresses)).flatten() else { continue };
        let is_sent = allowance.take(begun.elapsed().as_nanos() as u64) && socket.send(&reply);
        let count = match protocol {
            _ if !is_sent => &counts.unanswered,
            Protocol::Arp => &counts.arp,
            Protocol::NeighbourDiscovery => &counts.neighbour_discovery,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}
