//! The sending half: what `bpf/generate.bpf.c` is told before a transmission, and what it has counted afterwards.

use std::io;
use std::os::fd::RawFd;

use crate::error::{EngineError, ErrorKind};
use crate::flow_images::PIECE_BYTES;
use crate::gaps::GAP_FLOOR_NS;
use crate::pace::Pace;
use crate::pacer::Schedule;
use crate::sender::{Sender, SenderCounts};
use crate::signature::Signer;
use crate::sys::bpf::generating::{
    END, Flushed, GAP_BUCKETS, KernelSender, MAXIMUM_PORTS, MAXIMUM_SENDERS, NEVER, Progress, SEND, Settings, Variant,
};
use crate::sys::bpf::{Area, LiveFrames, Loaded, Object, Trace, resets_frames, set_devices, test_frame, test_run};
use crate::sys::kernel_link::network_namespace;
use crate::transmit_gaps::TransmitGaps;
use crate::trial_part::TrialPart;
use crate::xdp::frames::{BLOCK_BYTES, Room, SenderFrames};

/// `bpf/generate.bpf.c`, compiled when this program was built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generate.o"));
/// A buffer of this length is stretched for every frame, so that the kernel resets it each time.
const SHORTER_THAN_ANY_FRAME: usize = 59;
/// Runs of one call: more than a transmission has, so that a signal ends it.
const RUNS: u32 = 1 << 30;

/// A program that makes frames, with its maps. One thread runs it at a time.
#[derive(Debug)]
pub struct Generator {
    loaded: Loaded,
    /// Counts what drivers take; dropped before the object.
    _trace: Trace,
    settings: Area<Settings>,
    senders: Area<KernelSender>,
    progress: Area<Progress>,
    outputs: Area<Flushed>,
    /// In blocks of which each template has as many as its room says.
    templates: Area<[u8; BLOCK_BYTES]>,
    variants: Area<Variant>,
    order: Area<u64>,
    images: Area<[u8; PIECE_BYTES]>,
    sums: Area<u64>,
    gaps: Area<u64>,
    room: Room,
    /// What a run does last, where the rest is left out to measure its cost; 0: everything.
    last_step: u32,
    interfaces: Vec<u32>,
    /// The frame that buffers hold at first.
    blank: Vec<u8>,
    /// Runs between which nothing leaves: the largest burst.
    batch: u32,
}

impl Generator {
    /// Loads the program, which sends out of these interfaces, with tables of this room.
    fn load(interfaces: &[u32], room: Room, last_step: u32) -> io::Result<Self> {
        let mut object = Object::open(PROGRAM)?;
        let constants = [room.template_bytes as u32, last_step].map(u32::to_ne_bytes);
        object.set_constants(".rodata.constants", constants.as_flattened())?;
        object.set_entry_bytes("templates_map", room.template_bytes as u32)?;
        let entries = [
            ("templates_map", room.variants),
            ("variants_map", room.variants),
            ("order_map", room.order),
            ("images_map", room.images),
            ("sums_map", room.sums),
        ];
        entries.into_iter().try_for_each(|(map, entries)| object.set_entries(map, entries as u32))?;
        let loaded = object.load()?;
        set_devices(loaded.map("devices")?, interfaces)?;
        let generator = Self {
            _trace: loaded.attach("count_flushed")?,
            settings: Area::new(loaded.map(".bss.settings")?, 1)?,
            senders: Area::new(loaded.map(".bss.senders")?, MAXIMUM_SENDERS)?,
            progress: Area::new(loaded.map(".bss.progress")?, 1)?,
            outputs: Area::new(loaded.map(".bss.outputs")?, MAXIMUM_PORTS)?,
            templates: Area::new(loaded.map("templates_map")?, room.variants * room.template_bytes / BLOCK_BYTES)?,
            variants: Area::new(loaded.map("variants_map")?, room.variants)?,
            order: Area::new(loaded.map("order_map")?, room.order)?,
            images: Area::new(loaded.map("images_map")?, room.images)?,
            sums: Area::new(loaded.map("sums_map")?, room.sums)?,
            gaps: Area::new(loaded.map(".bss.gaps")?, MAXIMUM_SENDERS * GAP_BUCKETS)?,
            room,
            last_step,
            interfaces: interfaces.to_vec(),
            blank: vec![0; 60],
            batch: 1,
            loaded,
        };
        Ok(generator)
    }

    /// A generator for the first transmissions.
    ///
    /// # Errors
    /// Where the kernel refuses the program, or to run it.
    pub fn new(interfaces: &[u32]) -> Result<Self, EngineError> {
        let generator = Self::load(interfaces, Room::USUAL, 0).map_err(|error| refused(&error))?;
        LiveFrames { runs: 1, batch: 1 }
            .run(generator.program()?, &generator.blank)
            .map_err(|error| refused(&error))?;
        Ok(generator)
    }

    /// A generator whose frames reach nobody, and whose runs end with this step of the program's (0: with the last).
    pub fn detached(last_step: u32) -> Result<Self, EngineError> {
        Self::load(&[], Room::USUAL, last_step).map_err(|error| refused(&error))
    }

    /// One run over a buffer that reaches nobody: the frame that it made, if one was due.
    pub fn run_once(&self) -> Result<Option<Vec<u8>>, EngineError> {
        let before = self.made();
        let (_, frame) = test_frame(self.program()?, &self.blank).map_err(|error| refused(&error))?;
        Ok((self.made() > before).then_some(frame))
    }

    /// Many runs over one buffer: the mean time of one in nanoseconds.
    pub fn run_often(&self, runs: u32) -> Result<u32, EngineError> {
        test_run(self.program()?, &self.blank, runs).map(|(_, ns)| ns).map_err(|error| refused(&error))
    }

    /// Frames of all senders.
    fn made(&self) -> u64 {
        (0..self.settings.get(0).senders as usize).map(|index| self.senders.get(index).sent).sum()
    }

    fn program(&self) -> Result<RawFd, EngineError> {
        self.loaded.program("generate").map_err(|error| refused(&error))
    }

    /// Gets ready what a worker sends in a trial. The program waits until [`Self::begin`].
    ///
    /// # Errors
    /// Where frames cannot be made in the kernel.
    pub fn prepare(&mut self, part: &TrialPart, signer: &Signer, is_scheduled: bool) -> Result<(), EngineError> {
        if part.senders.len() > MAXIMUM_SENDERS {
            let message = format!("there are {} streams, and the kernel makes {MAXIMUM_SENDERS}", part.senders.len());
            return Err(EngineError::new(ErrorKind::BadRequest, message, "send fewer streams"));
        }
        let frames = part.senders.iter().map(|sender| SenderFrames::of(sender.plan().1));
        let frames = frames.collect::<Result<Vec<_>, _>>()?;
        self.make_room(frames.iter().map(SenderFrames::room).sum())?;
        self.gaps.clear(0..part.senders.len() * GAP_BUCKETS);
        let mut written = Vec::new();
        for (index, (sender, frames)) in part.senders.iter().zip(&frames).enumerate() {
            let first: Room = written.iter().copied().sum();
            self.write_tables(&first, frames);
            self.senders.set(index, frames.fill_in(&first, scheduled(sender)?));
            written.push(frames.room());
        }
        let longest = part.senders.iter().map(|sender| sender.plan().1.length()).max().unwrap_or(60);
        self.blank = vec![0; if resets_frames() { longest.max(60) } else { SHORTER_THAN_ANY_FRAME }];
        self.batch = part.shared.burst as u32;
        self.progress.set(0, Progress { batch_begins_ns: NEVER, next_sender: 1, ..Progress::default() });
        for (port, interface) in self.interfaces.iter().enumerate() {
            self.outputs.set(port, Flushed { interface: *interface, ..Flushed::default() });
        }
        let (first_key, second_key, mark) = signer.keys();
        self.settings.set(
            0,
            Settings {
                first_key,
                second_key,
                mark,
                end_ns: part.duration_ticks,
                last_ns: part.duration_ticks + part.catch_up_ticks,
                gap_floor_ns: GAP_FLOOR_NS,
                senders: part.senders.len() as u32,
                ports: self.interfaces.len() as u32,
                batch: self.batch,
                ends_with_frames: part.ends_with_frames.into(),
                is_scheduled: is_scheduled.into(),
                namespace: network_namespace(),
                ..Settings::default()
            },
        );
        Ok(())
    }

    /// Loads the program anew, with larger tables, where these do not suffice.
    fn make_room(&mut self, needed: Room) -> Result<(), EngineError> {
        needed.check()?;
        if !self.room.suffices_for(&needed) {
            let room = self.room.grown(&needed);
            let interfaces = self.interfaces.clone();
            *self = Self::load(&interfaces, room, self.last_step).map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    fn write_tables(&mut self, first: &Room, frames: &SenderFrames<'_>) {
        let blocks = self.room.template_bytes / BLOCK_BYTES;
        for (number, template) in frames.templates().enumerate() {
            for (block, bytes) in template.chunks(BLOCK_BYTES).enumerate() {
                let mut whole = [0; BLOCK_BYTES];
                whole[..bytes.len()].copy_from_slice(bytes);
                self.templates.set((first.variants + number) * blocks + block, whole);
            }
        }
        self.variants.write(first.variants, frames.variants());
        self.order.write(first.order, frames.order());
        self.images.write(first.images, frames.images());
        self.sums.write(first.sums, frames.sums());
    }

    /// What a thread needs to run the program; see [`Runner::run`].
    pub fn runner(&self) -> Result<Runner, EngineError> {
        Ok(Runner { program: self.program()?, blank: self.blank.clone(), batch: self.batch })
    }

    /// The first frame is due at this time of CLOCK_MONOTONIC.
    pub fn begin(&mut self, epoch_ns: u64) {
        // The epoch is there before the program looks at it.
        let settings = Settings { epoch_ns, ..self.settings.get(0) };
        self.settings.set(0, settings);
        self.settings.set(0, Settings { phase: SEND, ..settings });
    }

    /// No more frames are made.
    pub fn end(&mut self) {
        let settings = self.settings.get(0);
        self.settings.set(0, Settings { phase: END, ..settings });
    }

    /// Whether the program runs already.
    pub fn is_running(&self) -> bool {
        self.progress.get(0).batch > 0
    }

    /// When everything was sent or given up, in nanoseconds since the epoch.
    pub fn finished_ns(&self) -> Option<u64> {
        let progress = self.progress.get(0);
        (progress.is_finished != 0).then_some(progress.finished_ns)
    }

    /// How often the program has run, and what its clock said last, in nanoseconds since the epoch (0 before it).
    pub fn runs_and_time_ns(&self) -> (u64, u64) {
        let progress = self.progress.get(0);
        (progress.batch + progress.idle_runs, progress.now_ns)
    }

    /// Frames made so far, by stream.
    pub fn sent(&self, part: &TrialPart) -> Vec<(usize, u64)> {
        part.senders.iter().enumerate().map(|(index, sender)| (sender.stream, self.senders.get(index).sent)).collect()
    }

    /// By port, in their order.
    pub fn flushed(&self) -> Vec<Flushed> {
        (0..self.interfaces.len()).map(|port| self.outputs.get(port)).collect()
    }

    /// Notes in a worker's part what was sent, and how punctually; it ended `elapsed_ns` after the epoch if not before.
    pub fn note(&self, part: &mut TrialPart, elapsed_ns: u64) -> Result<(), EngineError> {
        let progress = self.progress.get(0);
        for (index, sender) in part.senders.iter_mut().enumerate() {
            let counted = self.senders.get(index);
            let buckets = self.gaps.copy(index * GAP_BUCKETS..(index + 1) * GAP_BUCKETS);
            let buckets = buckets.into_iter().enumerate().filter(|(_, count)| *count > 0);
            let buckets = buckets.map(|(bucket, count)| (shortest_of(bucket), count));
            let extremes = [counted.gap_minimum_ns, counted.gap_maximum_ns, counted.gap_sum_ns];
            let last_burst = counted.sent - counted.burst_from;
            let counts = SenderCounts {
                accepted: counted.sent,
                unsent_tester: counted.given_up,
                unsent_backpressure: 0,
                maximum_burst: counted.largest_burst.max(last_burst) as u32,
                bursts: counted.bursts,
                timed_bursts: progress.batches,
                burst_ticks: progress.batch_sum_ns,
            };
            sender.note(counts, TransmitGaps::counted(counted.sent, buckets, extremes)?);
            sender.count_rest();
        }
        part.gaps.note(progress.longest_gap_ns, progress.total_gap_ns, progress.gaps);
        let batches = progress.batch - u64::from(progress.place > 0 && progress.batch > 0);
        part.iterations = batches * u64::from(self.batch) + u64::from(progress.place);
        part.idle_iterations = progress.idle_runs;
        part.transmit_ticks = self.finished_ns().unwrap_or(elapsed_ns);
        Ok(())
    }
}

/// When the frames of a sender are due, in the kernel's terms; nothing is sent yet.
fn scheduled(sender: &Sender) -> Result<KernelSender, EngineError> {
    let Pace::Even(pacer) = sender.plan().0 else {
        let message = "frames with the timing of their capture are not sent in the kernel";
        return Err(EngineError::new(ErrorKind::BadRequest, message, "use another driver"));
    };
    let Schedule { next_tick, remainder, left_in_burst, whole, numerator, denominator, .. } = pacer.schedule();
    let Schedule { burst_frames, intended, is_paced, catch_up_ticks, .. } = pacer.schedule();
    Ok(KernelSender {
        due_ns: next_tick,
        remainder,
        whole_ns: whole,
        numerator,
        denominator,
        left_in_burst,
        burst_frames,
        most: intended.unwrap_or(u64::MAX),
        catch_up_ns: catch_up_ticks,
        is_paced: is_paced.into(),
        port: sender.transmit_port as u32,
        last_sent_ns: NEVER,
        gap_minimum_ns: u64::MAX,
        ..KernelSender::default()
    })
}

/// Runs a generator's program in the calling thread.
#[derive(Debug)]
pub struct Runner {
    program: RawFd,
    blank: Vec<u8>,
    batch: u32,
}

impl Runner {
    /// Runs until a signal ends it. An error is why the kernel does not run it.
    pub fn run(&self) -> io::Result<()> {
        match (LiveFrames { runs: RUNS, batch: self.batch }).run(self.program, &self.blank) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            result => result,
        }
    }
}

/// The shortest gap of a bucket: 256 of one width, then 128 for each doubling, as in HdrHistogram of two digits.
fn shortest_of(bucket: usize) -> u64 {
    let octave = (bucket as u64 >> 7).saturating_sub(1);
    (bucket as u64 - (octave << 7)) << octave
}

fn refused(error: &io::Error) -> EngineError {
    let message = format!("the kernel does not make frames by XDP: {error}");
    let next = "run as root on Linux 5.18 or newer, or use `driver: net_af_xdp`; libbpf's own words are on stderr";
    EngineError::new(ErrorKind::Port, message, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_where_those_before_them_end() {
        let begins: Vec<u64> = (0..1024).map(shortest_of).collect();
        assert!(begins.is_sorted());
        assert_eq!((begins[255], begins[256], begins[257], begins[383], begins[384]), (255, 256, 258, 510, 512));
    }
}
