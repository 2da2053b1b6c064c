//! The server: threads that share its ports, until a signal.

mod connection;
mod worker;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, ipproto, listen, socket_with, sockopt};
use serde::Serialize;

use self::worker::Worker;
use crate::client::tally::Segments;
use crate::tls;

/// What is served, and what is broken on purpose.
pub struct Serving {
    /// The address.
    pub on: IpAddr,
    /// The TCP ports.
    pub ports: Vec<u16>,
    /// TLS, 1.2 or 1.3.
    pub tls: bool,
    /// Threads.
    pub threads: u64,
    /// How long an answer waits.
    pub delay_ns: u64,
    /// Which answers wait; 0: each.
    pub delay_every: u64,
    /// Which answers are broken by a RST; 0: none.
    pub reset_every: u64,
    /// Which are ended early.
    pub short_every: u64,
    /// Which have the status 503.
    pub status_every: u64,
    /// Of which a byte is changed.
    pub corrupt_every: u64,
    /// The pause of each thread between two connections that it accepts; None: it accepts them as they come.
    pub accept_pause_ns: Option<u64>,
    /// How many may wait on each port to be accepted.
    pub accept_queue: i32,
}

impl Serving {
    /// Whether any connection or answer waits or is broken.
    pub fn breaks(&self) -> bool {
        let broken = self.reset_every + self.short_every + self.status_every + self.corrupt_every;
        self.delay_ns + broken > 0 || self.accept_pause_ns.is_some()
    }

    /// Whether the answer of this number, from 1, waits.
    fn delays(&self, number: u64) -> bool {
        self.delay_ns > 0 && (self.delay_every == 0 || number % self.delay_every == 0)
    }
}

/// What all threads count.
#[derive(Default)]
pub struct Counted {
    accepted: AtomicU64,
    requests: AtomicU64,
    broken: AtomicU64,
    cpu_ns: AtomicU64,
}

/// What a server counted.
#[derive(Serialize)]
pub struct Report {
    /// Of this program.
    pub version: &'static str,
    /// Connections that it accepted.
    pub accepted: u64,
    /// Requests that it got.
    pub requests: u64,
    /// Answers that it broke, as it was asked to.
    pub broken: u64,
    /// CPU time of its threads, in nanoseconds.
    pub cpu_ns: u64,
    /// SYNs for which it had no room; only of a server in the driver's hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full: Option<u64>,
    /// Segments of TCP; only of a server in the driver's hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments: Option<Segments>,
}

/// Serves until SIGTERM or SIGINT; the result is a line of JSON.
pub fn run(serving: &Serving) -> io::Result<String> {
    let stop = stopped_by_signal()?;
    let tls = match serving.tls {
        true => Some(tls::server(&tls::Identity::new().map_err(io::Error::other)?).map_err(io::Error::other)?),
        false => None,
    };
    let counted = Counted::default();
    // All listen before one serves, so that a port that is taken is told before anything is answered.
    let listeners = (0..serving.threads).map(|_| listen_on(serving)).collect::<io::Result<Vec<Vec<TcpListener>>>>()?;
    std::thread::scope(|scope| {
        let workers: Vec<_> = listeners
            .into_iter()
            .map(|ports| {
                let (counted, stop, tls) = (&counted, &stop, tls.clone());
                scope.spawn(move || Worker::new(serving, counted, ports, tls)?.run(stop))
            })
            .collect();
        for worker in workers {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server died")))?;
        }
        Ok::<(), io::Error>(())
    })?;
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    Ok(serde_json::to_string(&Report {
        version: env!("CARGO_PKG_VERSION"),
        accepted: read(&counted.accepted),
        requests: read(&counted.requests),
        broken: read(&counted.broken),
        cpu_ns: read(&counted.cpu_ns),
        full: None,
        segments: None,
    })?)
}

/// Becomes true at SIGTERM or SIGINT.
pub fn stopped_by_signal() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

/// Listeners on all ports.
pub fn listen_on(serving: &Serving) -> io::Result<Vec<TcpListener>> {
    serving.ports.iter().map(|&port| open(SocketAddr::new(serving.on, port), serving.accept_queue)).collect()
}

/// Each thread has a listener of its own on each port, and the kernel spreads connections over them (SO_REUSEPORT).
fn open(on: SocketAddr, queue: i32) -> io::Result<TcpListener> {
    let family = if on.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    let told = |error: rustix::io::Errno| io::Error::new(io::Error::from(error).kind(), format!("{on}: {error}"));
    bind(&socket, &on).map_err(told)?;
    // The kernel lowers it to net.core.somaxconn.
    listen(&socket, queue).map_err(told)?;
    Ok(TcpListener::from(socket))
}
