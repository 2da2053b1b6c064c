//! What became of connections and requests: counts that add up, and times as HdrHistograms.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;

/// The ways in which a connection or a request fails. Each failed one is counted in exactly one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The client's own: no local port was free.
    NoPorts,
    /// The client's own: it was half a second late with it, and left it.
    NotBegun,
    /// The client's own: it may open no more files, or has no memory left for a socket.
    NoFiles,
    /// A RST came as the answer to the SYN.
    Refused,
    /// No route, or an ICMP error.
    Unreachable,
    /// No connection within the time.
    ConnectTimeout,
    /// The TLS handshake failed.
    Tls,
    /// No TLS session within the time.
    TlsTimeout,
    /// A RST came while an answer was due.
    Reset,
    /// The server closed the connection before the answer was complete.
    Short,
    /// No complete answer within the time.
    ResponseTimeout,
    /// The status is not 200.
    Status,
    /// The length is not that of the object.
    Length,
    /// A byte of the body differs.
    Content,
    /// No HTTP/1.1 answer.
    NotHttp,
    /// A held connection ended although nobody asked for that.
    Lost,
    /// The client's own: no connection came about, and the client had been away before it began it.
    Late,
}

/// Times of one kind, in nanoseconds.
pub struct Times(Histogram<u64>);

const LONGEST_NS: u64 = 100_000_000_000;

impl Times {
    /// None yet; three digits are kept, up to 100 s, as of other latencies.
    pub fn new() -> Self {
        // The bounds are constant and valid.
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).unwrap_or_else(|_| unreachable!()))
    }

    /// Adds one.
    pub fn add(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Adds one several times.
    pub fn add_many(&mut self, ns: u64, times: u64) {
        self.0.saturating_record_n(ns.max(1), times);
    }

    /// The 99th percentile, 0 of none.
    pub fn p99(&self) -> u64 {
        if self.0.is_empty() { 0 } else { self.0.value_at_quantile(0.99) }
    }

    fn merge(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    fn report(&self) -> Option<TimesReport> {
        if self.0.is_empty() {
            return None;
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&self.0, &mut bytes).ok()?;
        Some(TimesReport {
            count: self.0.len(),
            minimum_ns: self.0.min(),
            mean_ns: self.0.mean(),
            maximum_ns: self.0.max(),
            histogram: STANDARD.encode(bytes),
        })
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

/// Times as they are reported: an HdrHistogram (V2, in base64) and its figures.
#[derive(Debug, Serialize)]
pub struct TimesReport {
    count: u64,
    minimum_ns: u64,
    mean_ns: f64,
    maximum_ns: u64,
    histogram: String,
}

/// Counts of those that were due in one phase; `due` is the sum of the others.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// How many were due.
    pub due: u64,
    /// How many got what they asked for, whole and right.
    pub completed: u64,
    /// How many did not, by the way in which they failed.
    pub failed: BTreeMap<Failure, u64>,
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.completed += other.completed;
        for (&kind, &count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
    }

    fn fail(&mut self, kind: Failure) {
        *self.failed.entry(kind).or_default() += 1;
    }

    /// All that failed.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}

/// What happened in one second of the run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interval {
    /// Completed in it, whenever due.
    pub completed: u64,
    /// Failed in it, whenever due.
    pub failed: u64,
    /// Bytes of bodies that came in it.
    pub bytes: u64,
    /// Connections that were open at its end, or as many as there were last.
    pub open: u64,
}

/// Segments of TCP, as an end without the kernel's sockets counts them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Segments {
    /// Sent, those that were sent again among them.
    pub sent: u64,
    /// Sent again, because nobody acknowledged them.
    pub resent: u64,
    /// Came with a wrong checksum.
    pub damaged: u64,
    /// Came again, or before others.
    pub repeated: u64,
    /// Belong to no connection.
    pub not_expected: u64,
}

/// What one thread, and in the end the client, has counted.
#[derive(Default)]
pub struct Tally {
    /// Those due in the ramp, which are not measured.
    pub ramp: Counts,
    /// Those due in the sustain phase.
    pub sustain: Counts,
    /// Of the sustain phase, those that were complete before it ended.
    pub in_time: u64,
    /// Bytes of bodies that came while the sustain phase lasted.
    pub bytes: u64,
    /// From the call of connect() to the established connection.
    pub connect: Times,
    /// From there to the TLS session.
    pub handshake: Times,
    /// From the moment when it was due to the first byte of the answer.
    pub first_byte: Times,
    /// To the last byte.
    pub last_byte: Times,
    /// How late the client was with what was due.
    pub lateness: Times,
    /// Connections that a server closed after an answer, and that were opened again.
    pub reopened: u64,
    /// Connections that were opened, for whatever purpose.
    pub opened: u64,
    /// The most that were open at once.
    pub most_open: u64,
    /// Held connections, each of which answered while all were open.
    pub held: u64,
    /// Seconds of the run.
    pub intervals: Vec<Interval>,
    /// The CPU time of the threads, in nanoseconds, and of the one that took most.
    pub cpu_ns: u64,
    /// The CPU time of the busiest thread.
    pub busiest_ns: u64,
    /// What only an end of our own TCP counts.
    pub segments: Option<Segments>,
}

impl Tally {
    /// Counts one that is due, in its phase.
    pub fn due(&mut self, measured: bool) {
        self.phase(measured).due += 1;
    }

    /// Counts one that failed, in its phase and in the second of `now_ns`.
    pub fn fail(&mut self, kind: Failure, measured: bool, now_ns: u64) {
        self.phase(measured).fail(kind);
        self.interval(now_ns).failed += 1;
    }

    /// Counts one that is complete.
    pub fn complete(&mut self, measured: bool, now_ns: u64) {
        self.phase(measured).completed += 1;
        self.interval(now_ns).completed += 1;
    }

    /// The second of this moment.
    pub fn interval(&mut self, now_ns: u64) -> &mut Interval {
        let second = (now_ns / 1_000_000_000) as usize;
        if self.intervals.len() <= second {
            self.intervals.resize(second + 1, Interval::default());
        }
        &mut self.intervals[second]
    }

    fn phase(&mut self, measured: bool) -> &mut Counts {
        if measured { &mut self.sustain } else { &mut self.ramp }
    }

    /// Adds what another thread has counted.
    pub fn merge(&mut self, other: &Self) {
        self.ramp.merge(&other.ramp);
        self.sustain.merge(&other.sustain);
        self.in_time += other.in_time;
        self.bytes += other.bytes;
        for (mine, theirs) in [
            (&mut self.connect, &other.connect),
            (&mut self.handshake, &other.handshake),
            (&mut self.first_byte, &other.first_byte),
            (&mut self.last_byte, &other.last_byte),
            (&mut self.lateness, &other.lateness),
        ] {
            mine.merge(theirs);
        }
        self.reopened += other.reopened;
        self.opened += other.opened;
        self.most_open += other.most_open;
        self.held += other.held;
        for (second, theirs) in other.intervals.iter().enumerate() {
            let mine = self.interval(second as u64 * 1_000_000_000);
            mine.completed += theirs.completed;
            mine.failed += theirs.failed;
            mine.bytes += theirs.bytes;
            mine.open += theirs.open;
        }
        self.cpu_ns += other.cpu_ns;
        self.busiest_ns = self.busiest_ns.max(other.busiest_ns);
    }

    /// The result, as it is printed (protocol/connections.md).
    pub fn report(&self, wall_ns: u64) -> Report<'_> {
        Report {
            version: env!("CARGO_PKG_VERSION"),
            wall_ns,
            ramp: &self.ramp,
            sustain: &self.sustain,
            in_time: self.in_time,
            bytes: self.bytes,
            connect: self.connect.report(),
            handshake: self.handshake.report(),
            first_byte: self.first_byte.report(),
            last_byte: self.last_byte.report(),
            lateness: self.lateness.report(),
            lateness_p99_ns: self.lateness.p99(),
            opened: self.opened,
            reopened: self.reopened,
            most_open: self.most_open,
            held: self.held,
            intervals: &self.intervals,
            cpu_ns: self.cpu_ns,
            busiest_thread_ns: self.busiest_ns,
            segments: self.segments,
        }
    }
}

/// The result.
#[derive(Serialize)]
pub struct Report<'a> {
    version: &'static str,
    wall_ns: u64,
    ramp: &'a Counts,
    sustain: &'a Counts,
    in_time: u64,
    bytes: u64,
    connect: Option<TimesReport>,
    handshake: Option<TimesReport>,
    first_byte: Option<TimesReport>,
    last_byte: Option<TimesReport>,
    lateness: Option<TimesReport>,
    lateness_p99_ns: u64,
    opened: u64,
    reopened: u64,
    most_open: u64,
    held: u64,
    intervals: &'a [Interval],
    cpu_ns: u64,
    busiest_thread_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Segments>,
}
