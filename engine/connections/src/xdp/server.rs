//! The server: the programs answer; the process sends again what nobody acknowledges.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nicbench_bpf::{Area, interface_facts};

use super::hook::{End, Hook, Sender};
use super::records::{RECORDS_A_BUCKET, SENT_SHIFT, Server, TICK_BITS, Work, counter, kind};
use super::{now_ns, ticks};
use crate::clock::thread_cpu_ns;
use crate::server::{Report, Serving, listen_on, stopped_by_signal};

/// How often the records are looked through.
const LOOK: Duration = Duration::from_millis(500);
/// The time between two looks at what did not fit into frames.
const TURN: Duration = Duration::from_millis(2);
/// The thread that sends it lives as long after the last.
const LINGERS: Duration = Duration::from_secs(2);
const RETRANSMISSION_NS: u64 = 1_000_000_000;
/// A segment is sent so often; then the connection ends.
const MOST_TRIES: u8 = 5;

/// Serves by this interface until SIGTERM or SIGINT, with room for this number of connections at once. Returns a line of
/// JSON.
///
/// # Errors
/// The driver has no native XDP, the interface has another program, or only the kernel's sockets can serve as asked.
pub fn run(serving: &Serving, device: &str, connections: u64) -> io::Result<String> {
    let other = |what: &str| Err(io::Error::other(format!("--driver xdp {what}: next, leave --driver out")));
    if serving.tls {
        return other("speaks no TLS");
    }
    if serving.breaks() {
        return other("breaks no answers and delays none");
    }
    let stop = stopped_by_signal()?;
    let records = (connections * 3 / 2).max(8 * RECORDS_A_BUCKET as u64).next_power_of_two();
    let buckets = (records / RECORDS_A_BUCKET as u64) as u32;
    let facts = interface_facts(device)?;
    let mut hook = Hook::load(device, End::Server(buckets), serving.on.is_ipv6())?;
    hook.set_own(serving.on, facts.mac);
    hook.fill_bodies()?;
    hook.wanted.first_port = serving.ports[0];
    hook.wanted.ports = serving.ports.len() as u16;
    hook.wanted.buckets = buckets;
    hook.attach(facts.mtu_bytes, serving.on.is_ipv6())?;
    // The kernel's listeners keep the ports from others, and say that the server is there; no frame reaches them.
    let _listeners = listen_on(serving)?;
    let table = hook.servers(records as usize)?;
    let mut sender: Option<(Sender, Instant)> = None;
    let mut looked = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TURN);
        let is_waiting = hook.is_postponing();
        sender = match sender {
            None if is_waiting => Some((hook.start_sender()?, Instant::now())),
            Some((sender, _)) if is_waiting => Some((sender, Instant::now())),
            Some((sender, last)) if last.elapsed() > LINGERS => {
                sender.end()?;
                None
            }
            other => other,
        };
        let is_open = hook.count(counter::ACCEPTED) + hook.count(counter::REPEATED) > hook.count(counter::ENDED);
        if is_open && looked.elapsed() > LOOK {
            looked = Instant::now();
            send_again(&mut hook, &table, sender.is_some())?;
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
fn send_again(hook: &mut Hook, table: &Area<Server>, has_sender: bool) -> io::Result<()> {
    for slot in 0..table.len() {
        let record = table.get(slot);
        if record.key == 0 || record.under_way == 0 {
            continue;
        }
        let now = ticks(now_ns()) >> SENT_SHIFT;
        // Both count to the same power of two, after 68 s, and begin anew.
        let age = now.wrapping_sub(u32::from(record.sent)) & (u32::MAX >> SENT_SHIFT);
        let age_ns = u64::from(age) << (SENT_SHIFT + TICK_BITS);
        if age_ns < RETRANSMISSION_NS << (record.under_way - 1).min(MOST_TRIES) {
            continue;
        }
        let kind = if record.under_way > MOST_TRIES { kind::GIVE_UP } else { kind::RESEND };
        hook.send_now(Work { slot: slot as u32, kind, usage: u16::from(record.under_way), ..Work::default() });
        if hook.urgent_room() == 0 {
            break; // the others have their turn at the next look
        }
    }
    if has_sender {
        hook.publish();
        return Ok(());
    }
    hook.send_urgent()
}
