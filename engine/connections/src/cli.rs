//! The command line: a client, a server, and nginx as a server. The result is one line of JSON on stdout.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;

use clap::{Args, Parser};
use rustls::pki_types::ServerName;

use crate::client::schedule::{Mix, Schedule};
use crate::client::{self, Object, Plan, Task};
use crate::clock::ns;
use crate::server::{self, Serving};
use crate::{http, nginx, object_path, tls};

const COULD_NOT_BEGIN: u8 = 3;

/// TCP connections by the clock, and what becomes of each: a client and a server of HTTP/1.1, with and without TLS.
#[derive(Parser)]
#[command(name = "nicbench-connections", version)]
enum Options {
    /// Opens connections or sends requests when they are due, and counts what becomes of each.
    Client(Box<Client>),
    /// Answers `GET /bytes/N` with N bytes, until a signal.
    Serve(Server),
    /// Has nginx answer the same, until a signal.
    Nginx(Nginx),
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum TaskName {
    Connect,
    Requests,
    Hold,
}

#[derive(Args)]
struct Client {
    /// What is due: connections that end (connect), requests (requests), or connections that stay (hold).
    #[arg(long)]
    task: TaskName,
    /// The server's address.
    #[arg(long)]
    to: IpAddr,
    /// The first of its TCP ports.
    #[arg(long)]
    port: u16,
    /// How many consecutive ports it listens on.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    ports: u16,
    /// Connections or requests a second.
    #[arg(long, value_parser = positive)]
    rate: f64,
    /// Seconds in which the rate rises from 0.
    #[arg(long, default_value_t = 0.0, value_parser = seconds)]
    ramp: f64,
    /// Seconds of the sustain phase; of `hold`, for which all connections are held.
    #[arg(long, value_parser = positive)]
    seconds: f64,
    /// Connections that carry requests, or that are held.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    connections: u64,
    /// Exchanges of each connection that ends.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    exchanges: u32,
    /// Size of an object and its weight in the mix, as `1024` or `1024:3`; may be given several times.
    #[arg(long = "object", value_parser = object, conflicts_with = "path")]
    objects: Vec<(u64, u32)>,
    /// A path whose answers are taken as they are, in place of objects.
    #[arg(long)]
    path: Option<String>,
    /// The name of the server in requests and in TLS.
    #[arg(long, default_value = "nicbench.test")]
    host: String,
    /// TLS of this version.
    #[arg(long)]
    tls: Option<tls::Version>,
    /// Close connections by a RST, in place of asking the server to close them.
    #[arg(long)]
    reset: bool,
    /// Seconds that a connection may take, and a TLS session.
    #[arg(long, default_value_t = 0.8, value_parser = positive)]
    connect_within: f64,
    /// Seconds that an answer may take.
    #[arg(long, default_value_t = 5.0, value_parser = positive)]
    answer_within: f64,
    /// Threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Make connections in the driver's hook (XDP) of this interface, in place of the kernel's sockets.
    #[arg(long, value_name = "INTERFACE", conflicts_with_all = ["tls", "path"])]
    xdp: Option<String>,
    /// The VLAN of that interface in which they are (802.1Q).
    #[arg(long, requires = "xdp", value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: Option<u16>,
}

#[derive(Args)]
struct Server {
    /// The address to listen on.
    #[arg(long)]
    on: IpAddr,
    /// The first TCP port.
    #[arg(long)]
    port: u16,
    /// How many consecutive ports.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    ports: u16,
    /// Speak TLS, 1.2 or 1.3.
    #[arg(long)]
    tls: bool,
    /// Threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Answer in the driver's hook (XDP) of this interface, in place of the kernel's sockets.
    #[arg(long, value_name = "INTERFACE", conflicts_with = "tls")]
    xdp: Option<String>,
    /// The VLAN of that interface in which they are (802.1Q).
    #[arg(long, requires = "xdp", value_parser = clap::value_parser!(u16).range(1..=4094))]
    vlan: Option<u16>,
    /// Connections that it has room for there at once.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    room: u64,
    /// Seconds that each answer waits.
    #[arg(long, default_value_t = 0.0, value_parser = seconds)]
    delay: f64,
    /// Have only every so-many-th answer wait; 0: each.
    #[arg(long, default_value_t = 0)]
    delay_every: u64,
    /// Break every so-many-th answer by a RST in its middle.
    #[arg(long, default_value_t = 0)]
    reset_every: u64,
    /// End every so-many-th answer early, by a FIN.
    #[arg(long, default_value_t = 0)]
    short_every: u64,
    /// Give every so-many-th answer the status 503.
    #[arg(long, default_value_t = 0)]
    status_every: u64,
    /// Change a byte of every so-many-th answer's body.
    #[arg(long, default_value_t = 0)]
    corrupt_every: u64,
    /// The number of connections to accept in a second, evenly; without it, each as it comes.
    #[arg(long, value_parser = positive)]
    accept_rate: Option<f64>,
    /// Connections that may wait on each port to be accepted (listen(2)); the kernel lowers it to net.core.somaxconn.
    #[arg(long, default_value_t = 65_535, value_parser = clap::value_parser!(i32).range(1..=65_535))]
    accept_queue: i32,
}

#[derive(Args)]
struct Nginx {
    /// The address to listen on.
    #[arg(long)]
    on: IpAddr,
    /// The first TCP port.
    #[arg(long)]
    port: u16,
    /// How many consecutive ports.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    ports: u16,
    /// Speak TLS, 1.2 or 1.3.
    #[arg(long)]
    tls: bool,
    /// Worker processes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: u64,
    /// Size of an object that clients ask for; may be given several times.
    #[arg(long = "object", default_value = "1")]
    objects: Vec<u64>,
}

/// Does what the arguments say, with so many open files.
pub fn run(open_files: u64) -> ExitCode {
    let done = match Options::parse() {
        Options::Client(asked) => run_client(&asked),
        Options::Serve(asked) => asked.run(),
        Options::Nginx(asked) => nginx::run(&nginx::Setup {
            on: asked.on,
            ports: (asked.port..).take(asked.ports.into()).collect(),
            tls: asked.tls,
            workers: asked.threads,
            objects: asked.objects.clone(),
            open_files,
        }),
    };
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("nicbench-connections: {error}");
            ExitCode::from(COULD_NOT_BEGIN)
        }
    }
}

fn run_client(asked: &Client) -> std::io::Result<String> {
    let plan = asked.plan()?;
    let (tally, wall_ns) = match &asked.xdp {
        None => client::run(&plan)?,
        Some(interface) => in_hook::connect(&plan, interface, asked.vlan)?,
    };
    Ok(serde_json::to_string(&tally.report(wall_ns))?)
}

impl Client {
    fn plan(&self) -> std::io::Result<Plan> {
        let tls = match self.tls {
            None => None,
            Some(version) => {
                let config = tls::client(version).map_err(std::io::Error::other)?;
                Some((config, ServerName::try_from(self.host.clone()).map_err(std::io::Error::other)?))
            }
        };
        let (task, schedule) = match self.task {
            TaskName::Connect => (Task::Connect, Schedule::steady(self.rate, self.ramp, self.seconds)),
            TaskName::Requests => {
                (Task::Requests { connections: self.connections }, Schedule::steady(self.rate, self.ramp, self.seconds))
            }
            TaskName::Hold => {
                (Task::Hold { hold_ns: ns(self.seconds) }, Schedule::counted(self.rate, self.connections))
            }
        };
        let task_is_requests = matches!(task, Task::Requests { .. });
        let from_ns = if matches!(task, Task::Hold { .. }) { 0 } else { ns(self.ramp) };
        let weights: Vec<u32> = self.objects.iter().map(|&(_, weight)| weight).collect();
        Ok(Plan {
            task,
            to: (self.port..).take(self.ports.into()).map(|port| SocketAddr::new(self.to, port)).collect(),
            schedule,
            sustain_ns: (from_ns, from_ns + ns(self.seconds)),
            objects: self.asked_objects(),
            mix: Mix::new(if weights.is_empty() { &[1] } else { &weights }),
            // A held connection makes one exchange when it is opened, and one while it is held.
            exchanges: if task == Task::Connect { self.exchanges } else { 2 },
            reset: self.reset,
            tls,
            connect_within_ns: ns(self.connect_within),
            answer_within_ns: ns(self.answer_within),
            // A thread without a connection would have no requests to send.
            threads: if task_is_requests { self.threads.min(self.connections) } else { self.threads },
        })
    }

    /// The host as requests name it (RFC 9110 section 7.2): an IPv6 address in brackets, and a port that is not the usual.
    fn host_header(&self) -> String {
        let name = match self.host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => self.host.clone(),
        };
        let usual = if self.tls.is_some() { 443 } else { 80 };
        if self.port == usual { name } else { format!("{name}:{}", self.port) }
    }

    fn asked_objects(&self) -> Vec<Object> {
        let host = self.host_header();
        let of = |path: &str, expected| Object {
            request: http::request(&host, path, false),
            last_request: http::request(&host, path, true),
            expected,
        };
        match &self.path {
            Some(path) => vec![of(path, None)],
            None if self.objects.is_empty() => vec![of(&object_path(1), Some(1))],
            None => self.objects.iter().map(|&(bytes, _)| of(&object_path(bytes), Some(bytes))).collect(),
        }
    }
}

/// Both ends in the driver's hook.
#[cfg(feature = "xdp")]
mod in_hook {
    use std::io;

    use crate::client::Plan;
    use crate::client::tally::Tally;
    use crate::server::Serving;
    use crate::xdp::{Link, client, server};

    pub fn connect(plan: &Plan, interface: &str, vlan: Option<u16>) -> io::Result<(Tally, u64)> {
        client::run(plan, &Link { interface: interface.to_owned(), vlan })
    }

    pub fn serve(serving: &Serving, interface: &str, vlan: Option<u16>, room: u64) -> io::Result<String> {
        server::run(serving, &Link { interface: interface.to_owned(), vlan }, room)
    }
}

#[cfg(not(feature = "xdp"))]
mod in_hook {
    use std::io;

    use crate::client::Plan;
    use crate::client::tally::Tally;
    use crate::server::Serving;

    fn is_missing<T>() -> io::Result<T> {
        Err(io::Error::other("this program was built without XDP: next, build it with its default features"))
    }

    pub fn connect(_: &Plan, _: &str, _: Option<u16>) -> io::Result<(Tally, u64)> {
        is_missing()
    }

    pub fn serve(_: &Serving, _: &str, _: Option<u16>, _: u64) -> io::Result<String> {
        is_missing()
    }
}

impl Server {
    fn run(&self) -> std::io::Result<String> {
        match &self.xdp {
            None => server::run(&self.serving()),
            Some(interface) => in_hook::serve(&self.serving(), interface, self.vlan, self.room),
        }
    }

    fn serving(&self) -> Serving {
        Serving {
            on: self.on,
            ports: (self.port..).take(self.ports.into()).collect(),
            tls: self.tls,
            threads: self.threads,
            delay_ns: ns(self.delay),
            delay_every: self.delay_every,
            reset_every: self.reset_every,
            short_every: self.short_every,
            status_every: self.status_every,
            corrupt_every: self.corrupt_every,
            // Threads share the rate, and each has its part of the connections.
            accept_pause_ns: self.accept_rate.map(|rate| ns(self.threads as f64 / rate)),
            accept_queue: self.accept_queue,
        }
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1e9 => Ok(value),
        _ => Err("a number above 0, at most 1e9".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=86_400.0).contains(&value) => Ok(value),
        _ => Err("seconds, at most 86400".to_owned()),
    }
}

fn object(text: &str) -> Result<(u64, u32), String> {
    let (bytes, weight) = text.split_once(':').unwrap_or((text, "1"));
    match (bytes.parse::<u64>(), weight.parse::<u32>()) {
        (Ok(bytes), Ok(weight)) if bytes <= 1 << 30 && (1..=10_000).contains(&weight) => Ok((bytes, weight)),
        _ => Err("bytes, at most 1 GiB, and a weight of 1 to 10000: 1024:3".to_owned()),
    }
}
