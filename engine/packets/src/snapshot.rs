//! How far the running trial is, readable by another thread while the worker goes on (a sequence lock of atomics).

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use nicbench_protocol::{StatsReply, StreamProgress};

const MAXIMUM_STREAMS: usize = 64;

/// The progress of a trial, written by a worker and read by anybody without a lock.
#[derive(Debug)]
pub struct Snapshot {
    /// Counts writes; odd while the worker writes.
    version: AtomicU64,
    /// The number of the trial; 0 means that there is none.
    trial: AtomicU64,
    elapsed_ns: AtomicU64,
    /// Those of the other workers: their streams' counts are added to these when somebody reads.
    others: Mutex<Vec<Arc<Snapshot>>>,
    streams: AtomicU64,
    sent: [AtomicU64; MAXIMUM_STREAMS],
    received: [AtomicU64; MAXIMUM_STREAMS],
}

impl Default for Snapshot {
    fn default() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        Self {
            version: AtomicU64::new(0),
            trial: AtomicU64::new(0),
            elapsed_ns: AtomicU64::new(0),
            others: Mutex::default(),
            streams: AtomicU64::new(0),
            sent: zeros(),
            received: zeros(),
        }
    }
}

impl Snapshot {
    /// Publishes the progress of `trial`; 0 means that there is none.
    pub fn publish(&self, trial: u32, elapsed_ns: u64, streams: impl Iterator<Item = StreamProgress>) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.trial.store(trial.into(), Ordering::Relaxed);
        self.elapsed_ns.store(elapsed_ns, Ordering::Relaxed);
        let mut count = 0;
        for (progress, (sent, received)) in streams.zip(self.sent.iter().zip(&self.received)) {
            sent.store(progress.sent, Ordering::Relaxed);
            received.store(progress.received, Ordering::Relaxed);
            count += 1;
        }
        self.streams.store(count, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }

    /// From now on another worker's part is read with this one. No worker ever waits for that.
    pub fn attach(&self, other: Arc<Snapshot>) {
        self.others.lock().unwrap_or_else(PoisonError::into_inner).push(other);
    }

    /// The latest complete snapshot; `None` where there is no trial.
    pub fn read(&self) -> Option<StatsReply> {
        let mut reply = self.read_own()?;
        for other in self.others.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Some(part) = other.read_own().filter(|part| part.trial == reply.trial) else { continue };
            for (own, other) in reply.streams.iter_mut().zip(part.streams) {
                own.sent += other.sent;
                own.received += other.received;
            }
        }
        Some(reply)
    }

    fn read_own(&self) -> Option<StatsReply> {
        loop {
            let version = self.version.load(Ordering::Acquire);
            let reply = self.read_unchecked();
            fence(Ordering::Acquire);
            if version % 2 == 0 && self.version.load(Ordering::Relaxed) == version {
                return (reply.trial != 0).then_some(reply);
            }
            std::thread::yield_now();
        }
    }

    fn read_unchecked(&self) -> StatsReply {
        let load = |atomic: &AtomicU64| atomic.load(Ordering::Relaxed);
        let count = (load(&self.streams) as usize).min(MAXIMUM_STREAMS);
        let stream =
            |index: usize| StreamProgress { sent: load(&self.sent[index]), received: load(&self.received[index]) };
        StatsReply {
            trial: load(&self.trial) as u32,
            elapsed_ns: load(&self.elapsed_ns),
            streams: (0..count).map(stream).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_a_trial_there_is_nothing_to_read() {
        assert_eq!(Snapshot::default().read(), None);
    }

    #[test]
    fn the_parts_of_all_workers_are_read_together() {
        let (lead, other) = (Snapshot::default(), Arc::new(Snapshot::default()));
        lead.attach(Arc::clone(&other));
        lead.publish(2, 10, [StreamProgress { sent: 5, received: 0 }].into_iter());
        other.publish(1, 10, [StreamProgress { sent: 9, received: 9 }].into_iter());
        assert_eq!(lead.read().unwrap().streams, [StreamProgress { sent: 5, received: 0 }], "an earlier trial's");
        other.publish(2, 10, [StreamProgress { sent: 1, received: 3 }].into_iter());
        assert_eq!(lead.read().unwrap().streams, [StreamProgress { sent: 6, received: 3 }]);
    }

    #[test]
    fn a_reader_never_sees_half_of_two_snapshots() {
        let snapshot = Snapshot::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..20_000u64 {
                    let progress = StreamProgress { sent: number, received: number };
                    snapshot.publish(1, number, [progress, progress].into_iter());
                }
            });
            for _ in 0..1000 {
                let Some(reply) = snapshot.read() else { continue };
                let equal =
                    |stream: &StreamProgress| stream.sent == reply.elapsed_ns && stream.received == reply.elapsed_ns;
                assert!(reply.streams.len() == 2 && reply.streams.iter().all(equal), "{reply:?}");
            }
        });
    }
}
