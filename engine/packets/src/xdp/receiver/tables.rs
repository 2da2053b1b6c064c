//! The maps of the receiving program, as memory of this process, in the sizes that a trial needs.

use std::io;
use std::sync::atomic::{Ordering, fence};

use super::hand_over::{HandOver, IN_THE_HOOK};
use crate::analyser::Layout;
use crate::flows::FlowLine;
use crate::sys::bpf::receiving::{
    CLOCK_LINES, ClockLine, ClockLines, Config, HISTOGRAM_BLOCKS, HistogramBlock, Hole, Interval, KEPT_BYTES,
    LENGTH_WORDS, Repetition, Settings, Shard, Stream, Tally, zeroed,
};
use crate::sys::bpf::{Area, Loaded, Object, Ring};

const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/receive.o"));
/// The same for a card that stamps what it receives.
const CARD_PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/receive_card.o"));
/// The program in the driver's hook that judges every frame.
pub const JUDGES_ALL: &str = "receive";
/// The most memory that all tables of a port may take: the kernel has no swap for it.
pub const MOST_BYTES: u64 = 4 << 30;

/// How much a trial counts apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub streams: usize,
    pub shards: usize,
    /// Of each shard.
    pub flows: usize,
    /// Of each flow.
    pub ring_words: usize,
    pub holes: usize,
    /// Of each shard.
    pub histograms: usize,
    pub intervals: usize,
    /// Of each shard: frames of which there is a copy.
    pub kept: usize,
}

/// The loaded program and its maps.
#[derive(Debug)]
pub struct Tables {
    pub configuration: Area<Config>,
    pub repetition: Area<Repetition>,
    card_clock: Area<ClockLines>,
    pub streams: Area<Stream>,
    pub lengths: Area<u64>,
    pub shards: Area<Shard>,
    pub lines: Area<FlowLine>,
    pub rings: Area<u64>,
    pub hole_counts: Area<u64>,
    pub holes: Area<Hole>,
    pub tallies: Area<Tally>,
    pub histograms: Area<HistogramBlock>,
    pub series: Area<Interval>,
    pub events: Ring,
    /// What is handed over to the processor of a worker that only receives.
    pub hand_over: Option<HandOver>,
    entries: [(&'static str, u64, usize); 11],
    loaded: Loaded,
}

impl Sizes {
    /// What most trials need, so that the program is verified once and not before every trial. Those of latency have 64
    /// groups of flows.
    pub fn usual(shards: usize) -> Self {
        Self { streams: 4, shards, flows: 4096, ring_words: 8, holes: 16, histograms: 72, intervals: 1024, kept: 1 }
    }

    /// Of a trial whose `flows` of this port have `layout` over `streams`.
    pub fn of(layout: &Layout, shards: usize, flows: usize, intervals: usize, kept: usize) -> Self {
        let streams = layout.groups.len();
        let groups: usize = layout.groups.iter().map(|(groups, _)| groups).sum();
        Self {
            streams,
            shards,
            flows: flows.max(1),
            ring_words: layout.ring_words,
            holes: layout.holes,
            histograms: groups + streams,
            intervals,
            kept,
        }
    }

    /// Each map's name, its entries, and the bytes of one.
    fn entries(&self) -> [(&'static str, u64, usize); 11] {
        let Self { streams, shards, flows, ring_words, holes, histograms, intervals, kept } = *self;
        let of = |numbers: &[usize]| numbers.iter().map(|number| (*number).max(1) as u64).product();
        [
            ("streams", of(&[streams]), size_of::<Stream>()),
            ("lengths", of(&[streams, LENGTH_WORDS]), 8),
            ("shards", of(&[shards]), size_of::<Shard>()),
            ("lines", of(&[shards, flows]), size_of::<FlowLine>()),
            ("rings", of(&[shards, flows, ring_words]), 8),
            ("hole_counts", of(&[shards, flows]), 8),
            ("holes", of(&[shards, flows, holes]), size_of::<Hole>()),
            ("tallies", of(&[shards, streams]), size_of::<Tally>()),
            ("histograms", of(&[shards, histograms, HISTOGRAM_BLOCKS]), size_of::<HistogramBlock>()),
            ("series", of(&[shards, streams, intervals]), size_of::<Interval>()),
            ("history", of(&[shards, kept]), KEPT_BYTES),
        ]
    }

    pub fn bytes(&self) -> u64 {
        self.entries().iter().map(|(_, entries, bytes)| entries * *bytes as u64).sum()
    }
}

impl Tables {
    /// Loads the program with room for `sizes`; for a card that stamps, the one of its interface. What is ours is judged by
    /// `processor`, or where it comes.
    pub fn load(sizes: Sizes, settings: Settings, card: Option<u32>, processor: Option<u32>) -> io::Result<Self> {
        let mut object = Object::open(if card.is_some() { CARD_PROGRAM } else { PROGRAM })?;
        if let Some(interface) = card {
            object.bind_to_interface(JUDGES_ALL, interface)?;
        }
        let mut entries = sizes.entries();
        for (name, count, _) in &mut entries {
            *count = count.next_power_of_two();
            let count = u32::try_from(*count).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            object.set_entries(name, count)?;
        }
        object.set_constants(".rodata.settings", &settings.bytes())?;
        HandOver::prepare(&mut object, processor)?;
        let loaded = object.load()?;
        let count =
            |name: &str| entries.iter().find(|(other, ..)| *other == name).map_or(1, |(_, count, _)| *count as usize);
        Ok(Self {
            configuration: Area::new(loaded.map(".data.configuration")?, 1)?,
            repetition: Area::new(loaded.map(".data.repetition")?, 1)?,
            card_clock: Area::new(loaded.map(".data.card_clock")?, 1)?,
            streams: Area::new(loaded.map("streams")?, count("streams"))?,
            lengths: Area::new(loaded.map("lengths")?, count("lengths"))?,
            shards: Area::new(loaded.map("shards")?, count("shards"))?,
            lines: Area::new(loaded.map("lines")?, count("lines"))?,
            rings: Area::new(loaded.map("rings")?, count("rings"))?,
            hole_counts: Area::new(loaded.map("hole_counts")?, count("hole_counts"))?,
            holes: Area::new(loaded.map("holes")?, count("holes"))?,
            tallies: Area::new(loaded.map("tallies")?, count("tallies"))?,
            histograms: Area::new(loaded.map("histograms")?, count("histograms"))?,
            series: Area::new(loaded.map("series")?, count("series"))?,
            events: Ring::new(loaded.map("events")?)?,
            hand_over: processor.map(|processor| HandOver::begin(&loaded, processor)).transpose()?,
            entries,
            loaded,
        })
    }

    /// Whether a trial of these sizes fits.
    pub fn fits(&self, sizes: &Sizes) -> bool {
        sizes.entries().iter().zip(&self.entries).all(|((_, needed, _), (_, there, _))| needed <= there)
    }

    pub fn program(&self) -> io::Result<i32> {
        self.loaded.program(if self.hand_over.is_some() { IN_THE_HOOK } else { JUDGES_ALL })
    }

    pub fn config(&self) -> Config {
        self.configuration.get(0)
    }

    /// Changes the configuration.
    pub fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        let mut config = self.configuration.get(0);
        change(&mut config);
        self.configuration.set(0, config);
    }

    /// Stamps are placed by this line from now on. Programs read the present one, so it is written beside that.
    pub fn set_clock_line(&mut self, line: ClockLine) {
        let mut lines = self.card_clock.get(0);
        let next = (lines.present as usize + 1) % CLOCK_LINES;
        lines.line[next] = line;
        self.card_clock.set(0, lines);
        fence(Ordering::SeqCst);
        lines.present = next as u32;
        self.card_clock.set(0, lines);
    }

    /// Makes all counts zero, while no program counts.
    pub fn clear(&mut self, sizes: &Sizes) {
        for shard in 0..sizes.shards {
            self.shards.set(shard, zeroed());
        }
        let lines = vec![FlowLine::default(); sizes.flows.min(1 << 16)];
        let all = sizes.shards * sizes.flows;
        for first in (0..all).step_by(lines.len()) {
            self.lines.write(first, &lines[..lines.len().min(all - first)]);
        }
        self.rings.clear(0..all * sizes.ring_words);
        self.hole_counts.clear(0..all);
        self.holes.clear(0..all * sizes.holes);
        self.tallies.clear(0..sizes.shards * sizes.streams);
        self.histograms.clear(0..sizes.shards * sizes.histograms * HISTOGRAM_BLOCKS);
        self.series.clear(0..sizes.shards * sizes.streams * sizes.intervals);
        self.lengths.clear(0..sizes.streams * LENGTH_WORDS);
    }
}
