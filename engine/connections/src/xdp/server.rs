//! The server: the programs answer; the process sends again what nobody acknowledges.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nicbench_bpf::Area;

use super::hook::{End, Hook, Link};
use super::records::{RECORDS_A_BUCKET, SENT_SHIFT, Server, TICK_BITS, Work, counter, kind, state, state_of};
use super::{now_ns, ticks};
use crate::clock::thread_cpu_ns;
use crate::server::{Report, Serving, listen_on, stopped_by_signal};

/// How often the records are looked through.
const LOOK: Duration = Duration::from_millis(500);
/// The time between two looks at whether it is to end.
const TURN: Duration = Duration::from_millis(10);
const RETRANSMISSION_NS: u64 = 1_000_000_000;
/// How long a connection whose end the peer has acknowledged waits for the peer's.
const CLOSING_NS: u64 = 30_000_000_000;
/// A segment is sent so often; then the connection ends.
const MOST_TRIES: u8 = 5;

/// Serves by this interface until SIGTERM or SIGINT, with room for this number of connections at once. Returns a line of
/// JSON.
///
/// # Errors
/// The driver has no native XDP, the interface has another program, or only the kernel's sockets can serve as asked.
pub fn run(serving: &Serving, on: &Link, connections: u64) -> io::Result<String> {
    let other = |what: &str| {
        Err(io::Error::other(format!("an end in the driver's hook {what}: next, use the kernel's sockets")))
    };
    if serving.tls {
        return other("speaks no TLS");
    }
    if serving.breaks() {
        return other("breaks no answers and delays none");
    }
    let stop = stopped_by_signal()?;
    let records = (connections * 3 / 2).max(8 * RECORDS_A_BUCKET as u64).next_power_of_two();
    let buckets = (records / RECORDS_A_BUCKET as u64) as u32;
    let mut hook = Hook::load(on, End::Server(buckets), serving.on)?;
    hook.fill_bodies()?;
    hook.wanted.first_port = serving.ports[0];
    hook.wanted.ports = serving.ports.len() as u16;
    hook.wanted.buckets = buckets;
    hook.attach()?;
    // The kernel's listeners keep the ports from others, and say that the server is there; no frame reaches them.
    let _listeners = listen_on(serving)?;
    let table = hook.servers(records as usize)?;
    let mut looked = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TURN);
        if looked.elapsed() > LOOK && hook.count(counter::TAKEN) > hook.count(counter::ENDED) {
            looked = Instant::now();
            send_again(&mut hook, &table)?;
        }
    }
    Ok(serde_json::to_string(&Report {
        version: env!("CARGO_PKG_VERSION"),
        accepted: hook.count(counter::ACCEPTED),
        requests: hook.count(counter::REQUESTS),
        broken: 0,
        cpu_ns: thread_cpu_ns(),
        full: Some(hook.count(counter::FULL)),
        segments: Some(hook.segments()),
    })?)
}

/// Sends what was not acknowledged for long enough, and ends connections of which that does not help.
fn send_again(hook: &mut Hook, table: &Area<Server>) -> io::Result<()> {
    for slot in 0..table.len() {
        let record = table.get(slot);
        if record.key == 0 || record.tries == 0 {
            continue;
        }
        let now = ticks(now_ns()) >> SENT_SHIFT;
        // Both count to the same power of two, after 68 s, and begin anew.
        let age = now.wrapping_sub(u32::from(record.sent)) & (u32::MAX >> SENT_SHIFT);
        let age_ns = u64::from(age) << (SENT_SHIFT + TICK_BITS);
        let is_closing = state_of(record.control) == state::CLOSING;
        let within_ns = match record.tries {
            _ if is_closing => CLOSING_NS,
            tries => RETRANSMISSION_NS << (tries - 1).min(MOST_TRIES),
        };
        if age_ns < within_ns {
            continue;
        }
        let kind = if is_closing || record.tries > MOST_TRIES { kind::GIVE_UP } else { kind::RESEND };
        hook.rings.send_now(0, Work { slot: slot as u32, kind, usage: u16::from(record.tries), ..Work::default() });
        if hook.rings.urgent_room(0) == 0 {
            break; // the others have their turn at the next look
        }
    }
    hook.send_urgent()
}
