//! One port's receiver: the program in the driver's hook that judges every frame, and what it counted as an analyser.
//!
//! Each receive queue is served by one processor at a time, so every table exists once for each of them and nothing is
//! atomic. Between trials the tables are memory of this process, in which it makes everything zero.

mod counted;
mod dry_runs;
mod events;
mod hand_over;
mod refusals;
mod stream_entry;
mod tables;

use std::collections::BTreeMap;

use crate::analyser::{Analyser, Detail, Expected, Layout};
use crate::capture::Capture;
use crate::error::{EngineError, ErrorKind};
use crate::signature::Signer;
use crate::stamps::StampTally;
use crate::sys::bpf::XdpLink;
use crate::sys::bpf::receiving::{
    AFTER_DRAIN, IDLE, LENGTH_WORDS, MOST_OFFSETS, RUNNING, Settings, split_event, wait_for_programs, zeroed,
};
use crate::traffic::SignatureSearch;
use crate::xdp::card_clock::CardClock;
use events::ShardEvents;
use hand_over::HandOver;
use refusals::{at_port, not_loaded, refusal};
use tables::{MOST_BYTES, Sizes, Tables};

/// Ports that a session may have; a port's own analyser knows of all.
const MOST_PORTS: usize = 64;
/// Intervals beyond the transmission, for the drain and for what is late.
const SPARE_INTERVALS: u64 = 600;
const MOST_INTERVALS: u64 = 4096;
/// A frame of which the program sees everything: what fits into a page beside the kernel's own data.
const LONGEST_FRAME: usize = 3840;

/// Who judges what is ours.
#[derive(Debug, Clone, Copy)]
pub struct Judges {
    /// Of the port; each judges what comes there, or finds out what is ours.
    pub queues: u32,
    /// Of a worker that only receives.
    pub processor: Option<u32>,
}

/// One queue judges everything.
const ONE_QUEUE: Judges = Judges { queues: 1, processor: None };

/// The receiver of one port.
#[derive(Debug)]
pub struct Receiver {
    port: usize,
    /// One for each receive queue, and one for what is handed over.
    shards: usize,
    processor: Option<u32>,
    settings: Settings,
    /// Closed before the program goes.
    link: Option<XdpLink>,
    tables: Tables,
    /// The interface's, where its card stamps what it receives.
    card: Option<(u32, CardClock)>,
    trial: Option<Trial>,
    /// Of the trials before.
    totals: BTreeMap<String, u64>,
    /// Of the tables before.
    refused: u64,
}

#[derive(Debug)]
struct Trial {
    sizes: Sizes,
    layout: Layout,
    /// What every shard's analyser begins as.
    empty: Analyser,
    flows: Vec<(u32, u32)>,
    /// By the kernel's number of a stream: its place in `empty`.
    order: Vec<usize>,
    shards: Vec<ShardEvents>,
}

impl Receiver {
    /// Attaches the program to an interface in native mode. What is ours is judged by `processor`, or where it comes.
    ///
    /// # Errors
    /// Where another program is there, the driver has no native XDP, or this process may not.
    pub fn attach(
        port: usize,
        name: &str,
        interface: u32,
        judges: Judges,
        clock: Option<CardClock>,
    ) -> Result<Self, EngineError> {
        let settings = Settings { is_stamped: clock.is_some().into(), ..Settings::default() };
        let card = clock.map(|clock| (interface, clock));
        let mut receiver = Self::detached(port, judges, settings, card).map_err(|error| at_port(name, error))?;
        let link = receiver.tables.program().and_then(|program| XdpLink::attach(program, interface));
        receiver.link = Some(link.map_err(|error| refusal(name, interface, &error))?);
        Ok(receiver)
    }

    fn detached(
        port: usize,
        Judges { queues, processor }: Judges,
        settings: Settings,
        card: Option<(u32, CardClock)>,
    ) -> Result<Self, EngineError> {
        let shards = queues.max(1) as usize + usize::from(processor.is_some());
        let tables = load(Sizes::usual(shards), settings, card.as_ref(), processor)?;
        let totals = BTreeMap::new();
        Ok(Self { port, shards, processor, settings, link: None, tables, card, trial: None, totals, refused: 0 })
    }

    /// Makes everything zero and ready for a trial; nothing counts before [`Self::set_epoch`].
    ///
    /// # Errors
    /// Where a stream has what the program cannot check, or the tables would take too much memory.
    pub fn begin(
        &mut self,
        trial: u32,
        signer: &Signer,
        expected: &[Expected],
        detail: Detail,
        duration_ns: u64,
        capture: Option<Capture>,
    ) -> Result<(), EngineError> {
        if self.is_counting() {
            self.end();
            self.settle();
        }
        self.keep_totals();
        let ports = expected.iter().map(|stream| stream.receive_port + 1).max().unwrap_or(1);
        let empty = Analyser::with_detail(*signer, expected.to_vec(), ports.max(MOST_PORTS), detail)?;
        let layout = empty.layout();
        let flows =
            expected.iter().filter(|stream| stream.receive_port == self.port).map(|stream| stream.flows as usize);
        let interval_ns = Analyser::interval_for(duration_ns);
        let intervals = (duration_ns / interval_ns + SPARE_INTERVALS).min(MOST_INTERVALS);
        let around = capture.as_ref().map_or(0, Capture::around);
        let sizes = Sizes::of(&layout, self.shards, flows.sum(), intervals as usize, around as usize + 1);
        self.make_room(&sizes)?;
        self.tables.clear(&sizes);
        if let Some((_, clock)) = &mut self.card {
            clock.calibrate();
        }
        self.follow_clock();
        let order = self.write_streams(expected, &layout)?;
        self.configure(trial, signer, expected, &layout, &sizes, interval_ns)?;
        let first = capture.as_ref().and_then(Capture::most_of_first).unwrap_or(0);
        self.tables.configure(|config| (config.capture_frames, config.capture_around) = (first, around));
        self.tables.events.take();
        let all_flows = expected.iter().map(|stream| stream.flows as usize).sum();
        let events = || ShardEvents::new(all_flows, expected.len(), detail.reordering_n as usize, capture.clone());
        let shards = (0..self.shards).map(|_| events()).collect();
        let flows = expected.iter().map(|stream| (stream.first_flow, stream.flows)).collect();
        self.trial = Some(Trial { sizes, layout, empty, flows, order, shards });
        Ok(())
    }

    fn make_room(&mut self, sizes: &Sizes) -> Result<(), EngineError> {
        if self.tables.fits(sizes) {
            return Ok(());
        }
        if sizes.bytes() > MOST_BYTES {
            let message = format!(
                "{} flows at {} receive queues take {} MiB of the kernel's memory, and the limit is {} MiB",
                sizes.flows,
                sizes.shards,
                sizes.bytes() >> 20,
                MOST_BYTES >> 20
            );
            let next = "use fewer flows, histograms or queues (ethtool -L), or another driver";
            return Err(EngineError::new(ErrorKind::BadRequest, message, next));
        }
        let tables = load(*sizes, self.settings, self.card.as_ref(), self.processor)?;
        if let Some(link) = &self.link {
            let replaced = tables.program().and_then(|program| link.replace(program));
            replaced.map_err(|error| not_loaded(&error, self.card.is_some()))?;
            wait_for_programs();
        }
        self.refused = self.receive_overrun();
        self.tables = tables;
        Ok(())
    }

    /// Streams in the order of their flows; gives the place of each.
    fn write_streams(&mut self, expected: &[Expected], layout: &Layout) -> Result<Vec<usize>, EngineError> {
        let mut order: Vec<usize> = (0..expected.len()).collect();
        order.sort_by_key(|index| expected[*index].first_flow);
        let groups: usize = layout.groups.iter().map(|(groups, _)| groups).sum();
        let first_group = |index: usize| layout.groups[..index].iter().map(|(groups, _)| groups).sum::<usize>();
        let mut first_line = 0;
        for (place, index) in order.iter().enumerate() {
            let (mut stream, lengths) = stream_entry::entry(&expected[*index], self.port)?;
            let longest = expected[*index].template.length();
            if stream.is_here != 0 && longest > LONGEST_FRAME {
                let message = format!("frames of {longest} bytes reach over a page, of which XDP sees one");
                let next = format!("use frames up to {LONGEST_FRAME} bytes, or another driver");
                return Err(EngineError::new(ErrorKind::BadRequest, message, next));
            }
            stream.first_line = first_line;
            stream.first_group = first_group(*index) as u32;
            stream.group_shift = layout.groups[*index].1;
            stream.shared_group = (groups + index) as u32;
            first_line += if stream.is_here != 0 { stream.flows } else { 0 };
            for length in lengths {
                let word = place * LENGTH_WORDS + length / 64;
                let marked = self.tables.lengths.get(word) | 1 << (length % 64);
                self.tables.lengths.set(word, marked);
            }
            self.tables.streams.set(place, stream);
        }
        Ok(order)
    }

    fn configure(
        &mut self,
        trial: u32,
        signer: &Signer,
        expected: &[Expected],
        layout: &Layout,
        sizes: &Sizes,
        interval_ns: u64,
    ) -> Result<(), EngineError> {
        if layout.offsets.len() > MOST_OFFSETS {
            let message = format!("signatures at {} places (the most is {MOST_OFFSETS})", layout.offsets.len());
            return Err(EngineError::new(ErrorKind::BadRequest, message, "use fewer kinds of headers in one trial"));
        }
        let is_carried = expected.iter().any(|stream| stream.template.search() == SignatureSearch::Carried);
        let (first_key, second_key, mark) = signer.keys();
        self.tables.configure(|config| {
            (config.first_key, config.second_key, config.mark, config.trial) = (first_key, second_key, mark, trial);
            (config.epoch_ns, config.last_slow_ns, config.interval_ns) = (0, 0, interval_ns);
            (config.streams, config.shards) = (sizes.streams as u32, sizes.shards as u32);
            (config.flows, config.histograms) = (sizes.flows as u32, sizes.histograms as u32);
            (config.ring_words, config.holes) = (sizes.ring_words as u32, sizes.holes as u32);
            (config.intervals, config.is_carried) = (sizes.intervals as u32, is_carried.into());
            config.offsets = layout.offsets.len() as u32;
            config.offset.iter_mut().zip(&layout.offsets).for_each(|(place, offset)| *place = *offset as u32);
            config.is_ready = 1;
        });
        Ok(())
    }

    /// From this moment of CLOCK_MONOTONIC on, frames count; times are measured from it.
    pub fn set_epoch(&mut self, monotonic_ns: u64) {
        self.tables.configure(|config| config.epoch_ns = monotonic_ns);
        self.tables.configure(|config| config.phase = RUNNING);
    }

    /// The last look that found the DUT's core shared.
    pub fn set_last_slow(&mut self, monotonic_ns: u64) {
        self.tables.configure(|config| config.last_slow_ns = monotonic_ns);
    }

    /// Ends the drain: frames that come after [`Self::settle`] count as late.
    pub fn end_drain(&mut self) {
        self.poll();
        self.tables.configure(|config| config.phase = AFTER_DRAIN);
    }

    /// Nothing counts any more, after [`Self::settle`].
    pub fn end(&mut self) {
        self.tables.configure(|config| config.phase = IDLE);
    }

    /// Whether frames count, be it as late ones.
    pub fn is_counting(&self) -> bool {
        self.tables.config().phase != IDLE
    }

    /// Waits until no frame is judged any more as before, at any port; without an interface none is. It takes ten
    /// milliseconds and more: once for all ports is enough.
    pub fn settle(&self) {
        if self.link.is_some() {
            wait_for_programs();
        }
    }

    /// Reads the card's clock, so that the program places its stamps by how it runs now.
    fn follow_clock(&mut self) {
        let Some((_, clock)) = &mut self.card else { return };
        clock.follow();
        if let Some(line) = clock.line() {
            self.tables.set_clock_line(line);
        }
    }

    /// The clock that stamps what is received, where that is the card's.
    pub fn card_clock(&self) -> Option<&CardClock> {
        self.card.as_ref().map(|(_, clock)| clock)
    }

    /// What became of the stamps since the trial began; nothing where no card stamps.
    pub fn stamp_tally(&self) -> StampTally {
        let shards = (0..self.shards).map(|number| self.tables.shards.get(number));
        self.card_clock().map_or_else(StampTally::default, |clock| clock.tally(shards))
    }

    /// Judges what the program has handed over.
    pub fn poll(&mut self) {
        self.follow_clock();
        let Some(trial) = &mut self.trial else { return };
        for record in self.tables.events.take() {
            let Some((event, bytes)) = split_event(&record) else { continue };
            let Some(shard) = trial.shards.get_mut(event.shard as usize) else { continue };
            let first_line = event.shard as usize * trial.sizes.flows;
            let (tables, flows, order) = (&self.tables, &trial.flows, &trial.order);
            let expects = |flow: u32| {
                let place = order.iter().position(|index| flow.wrapping_sub(flows[*index].0) < flows[*index].1);
                let stream = tables.streams.get(place.unwrap_or(0));
                let line = first_line + (stream.first_line + flow.wrapping_sub(stream.first_flow)) as usize;
                if line < tables.lines.len() { tables.lines.get(line).next } else { 0 }
            };
            shard.take((&event, bytes), self.port, order, &trial.empty, expects);
        }
    }

    /// Frames received so far, by stream in their order.
    pub fn received(&self) -> Vec<u64> {
        let Some(trial) = &self.trial else { return Vec::new() };
        let mut received = vec![0; trial.order.len()];
        for shard in 0..trial.sizes.shards {
            for (place, index) in trial.order.iter().enumerate() {
                received[*index] += self.tables.tallies.get(shard * trial.sizes.streams + place).received;
            }
        }
        received
    }

    /// What this port has received so far, of all its queues.
    pub fn analyser(&mut self) -> Result<Analyser, EngineError> {
        self.poll();
        let Some(trial) = &self.trial else {
            return Err(EngineError::new(ErrorKind::BadState, "no trial has begun", "call begin first"));
        };
        let mut whole: Option<Analyser> = None;
        for shard in 0..trial.sizes.shards {
            let mut analyser = trial.empty.clone();
            analyser.take_counted(self.port, self.counted(trial, shard));
            match &mut whole {
                None => whole = Some(analyser),
                Some(whole) => whole.merge(analyser),
            }
        }
        Ok(whole.unwrap_or_else(|| trial.empty.clone()))
    }

    fn keep_totals(&mut self) {
        self.totals = self.counters();
        (0..self.shards).for_each(|number| self.tables.shards.set(number, zeroed()));
    }

    /// Frames that the processor of a worker had no place for, since the port was opened.
    pub fn receive_overrun(&self) -> u64 {
        self.refused + self.tables.hand_over.as_ref().map_or(0, HandOver::refused)
    }

    /// What happened beside the counts of trials, since the port was opened.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = self.totals.clone();
        let shards = if self.tables.config().is_ready == 0 { 0 } else { self.shards };
        for shard in (0..shards).map(|number| self.tables.shards.get(number)) {
            for (name, count) in [("passed_to_kernel", shard.passed), ("events_lost", shard.events_lost)] {
                *counters.entry(name.to_owned()).or_default() += count;
            }
        }
        counters
    }
}

fn load(
    sizes: Sizes,
    settings: Settings,
    card: Option<&(u32, CardClock)>,
    processor: Option<u32>,
) -> Result<Tables, EngineError> {
    let tables = Tables::load(sizes, settings, card.map(|(interface, _)| *interface), processor);
    tables.map_err(|error| not_loaded(&error, card.is_some()))
}
