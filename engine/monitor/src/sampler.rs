//! Takes samples from every source, and counts what they cost.

use nicbench_protocol::{Cost, SourceReply};

use crate::open_file::Buffer;
use crate::record::{Count, Record};
use crate::sources::{Moment, SOURCES, Source, SourceOptions};
use crate::sys::clock::monotonic_ns;
use crate::sys::usage::{cpu_ns, resident_bytes};

/// Takes samples from every source.
pub struct Sampler {
    sources: Vec<Active>,
    buffer: Buffer,
    pub record: Record,
    own: Count,
    began_ns: u64,
    last_ns: u64,
    samples: u64,
    maximum_sample_ns: u64,
    /// Whether sources that interrupt other CPUs are left out.
    quiet: bool,
}

struct Active {
    name: &'static str,
    source: Box<dyn Source>,
    /// Whether it was left out: its next values span more than an interval.
    stale: bool,
}

impl Sampler {
    /// Opens every source; a source that this machine lacks says why.
    pub fn open(asked: &SourceOptions) -> (Self, Vec<SourceReply>) {
        let mut record = Record::default();
        let mut own = Count::new(&mut record, "monitor_cpu_ns", "monitor");
        own.put(&mut record, Some(cpu_ns()));
        let (mut sources, mut replies) = (Vec::new(), Vec::new());
        for (name, open) in SOURCES {
            let opened = open(asked, &mut record);
            replies.push(SourceReply { source: name.into(), missing: opened.as_ref().err().cloned() });
            sources.extend(opened.ok().map(|source| Active { name, source, stale: false }));
        }
        let (now, buffer) = (monotonic_ns(), Buffer::default());
        let sampler = Self {
            sources,
            buffer,
            record,
            own,
            began_ns: now,
            last_ns: now,
            samples: 0,
            maximum_sample_ns: 0,
            quiet: false,
        };
        (sampler, replies)
    }

    /// The names of all sources.
    pub fn source_names() -> Vec<String> {
        SOURCES.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// Leaves out the sources that interrupt other CPUs, or takes them in again.
    pub fn set_quiet(&mut self, quiet: bool) {
        self.quiet = quiet;
    }

    /// Takes a sample: `record` holds its values. Gives the interval and the time of its end, and sources that broke.
    pub fn sample(&mut self) -> (u64, u64, Vec<SourceReply>) {
        let cost_before = cpu_ns();
        let now_ns = monotonic_ns();
        let interval_ns = now_ns - self.last_ns;
        self.last_ns = now_ns;
        self.record.clear();
        let mut moment = Moment { buffer: &mut self.buffer, record: &mut self.record, now_ns, forks: None };
        let (quiet, mut broken) = (self.quiet, Vec::new());
        self.sources.retain_mut(|active| {
            if quiet && active.source.interrupts_others() {
                active.stale = true;
                return true;
            }
            let length = moment.record.values().len();
            let sampled = active.source.sample(&mut moment);
            if std::mem::take(&mut active.stale) {
                moment.record.truncate(length);
            }
            let reply = |missing: String| SourceReply { source: active.name.into(), missing: Some(missing) };
            broken.extend(sampled.as_ref().err().cloned().map(reply));
            sampled.is_ok()
        });
        let cost = cpu_ns();
        self.own.put(&mut self.record, Some(cost));
        self.maximum_sample_ns = self.maximum_sample_ns.max(cost - cost_before);
        self.samples += 1;
        (interval_ns, now_ns, broken)
    }

    /// What sampling cost so far, by getrusage(2).
    pub fn cost(&self) -> Cost {
        Cost {
            cpu_ns: cpu_ns(),
            elapsed_ns: monotonic_ns() - self.began_ns,
            samples: self.samples,
            maximum_sample_ns: self.maximum_sample_ns,
            resident_bytes: resident_bytes(),
        }
    }
}
