//! The sending half: what `bpf/generate.bpf.c` is told before a transmission, and what it has counted afterwards.

use std::io;
use std::os::fd::RawFd;

use crate::error::{EngineError, ErrorKind};
use crate::flow_images::PIECE_BYTES;
use crate::gaps::GAP_FLOOR_NS;
use crate::sender::{Sender, SenderCounts};
use crate::signature::Signer;
use crate::sys::bpf::generating::{
    END, Flushed, GAP_BUCKETS, KernelSender, MAXIMUM_PIECES, MAXIMUM_PORTS, MAXIMUM_SENDERS, Progress, SEND, Settings,
    TEMPLATE_BYTES, TemplateBytes,
};
use crate::sys::bpf::{Area, LiveFrames, Loaded, Object, Trace, resets_frames, set_devices};
use crate::sys::kernel_link::network_namespace;
use crate::transmit_gaps::TransmitGaps;
use crate::trial_part::TrialPart;

/// `bpf/generate.bpf.c`, compiled when this program was built.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/generate.o"));
/// The longest frame without FCS that the kernel makes: a page less what it keeps there.
pub const LARGEST_FRAME: usize = 3392;
/// A buffer of this length is stretched for every frame, so that the kernel resets it each time.
const SHORTER_THAN_ANY_FRAME: usize = 59;
/// Runs of one call: more than a transmission has, so that a signal ends it.
const RUNS: u32 = 1 << 30;
const IMAGES_AT_FIRST: usize = 4096;

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
    templates: Area<TemplateBytes>,
    images: Area<[u8; PIECE_BYTES]>,
    sums: Area<u64>,
    gaps: Area<u64>,
    interfaces: Vec<u32>,
    /// The frame that buffers hold at first.
    blank: Vec<u8>,
    /// Runs between which nothing leaves: the largest burst.
    batch: u32,
}

impl Generator {
    /// Loads the program, which sends out of these interfaces; frames need so many images and sums at most.
    fn load(interfaces: &[u32], images: usize, sums: usize) -> io::Result<Self> {
        let mut object = Object::open(PROGRAM)?;
        object.set_entries("images_map", images as u32)?;
        object.set_entries("sums_map", sums as u32)?;
        let loaded = object.load()?;
        set_devices(loaded.map("devices")?, interfaces)?;
        let generator = Self {
            _trace: loaded.attach("count_flushed")?,
            settings: Area::new(loaded.map("settings_map")?, 1)?,
            senders: Area::new(loaded.map("senders_map")?, MAXIMUM_SENDERS)?,
            progress: Area::new(loaded.map("progress_map")?, 1)?,
            outputs: Area::new(loaded.map("outputs_map")?, MAXIMUM_PORTS)?,
            templates: Area::new(loaded.map("templates_map")?, MAXIMUM_SENDERS)?,
            images: Area::new(loaded.map("images_map")?, images)?,
            sums: Area::new(loaded.map("sums_map")?, sums)?,
            gaps: Area::new(loaded.map("gaps_map")?, MAXIMUM_SENDERS * GAP_BUCKETS)?,
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
        let generator = Self::load(interfaces, IMAGES_AT_FIRST, IMAGES_AT_FIRST).map_err(|error| refused(&error))?;
        LiveFrames { runs: 1, batch: 1 }
            .run(generator.program()?, &generator.blank)
            .map_err(|error| refused(&error))?;
        Ok(generator)
    }

    fn program(&self) -> Result<RawFd, EngineError> {
        self.loaded.program("generate").map_err(|error| refused(&error))
    }

    /// Gets ready what a worker sends in a trial. The program waits until [`Self::begin`].
    ///
    /// # Errors
    /// Where frames cannot be made in the kernel.
    pub fn prepare(&mut self, part: &TrialPart, signer: &Signer, is_scheduled: bool) -> Result<(), EngineError> {
        self.check_room(part)?;
        let (mut first_image, mut first_sum) = (0, 0);
        self.gaps.clear(0..part.senders.len() * GAP_BUCKETS);
        for (index, sender) in part.senders.iter().enumerate() {
            let kernel_sender = self.kernel_sender(index, sender, (first_image, first_sum))?;
            let (_, writer) = sender.plan();
            let Some(parts) = writer.parts() else { continue };
            self.images.write(first_image, parts.images.images());
            let sums: Vec<u64> = parts.images.sums().iter().map(|sum| sum.swap_bytes().into()).collect();
            self.sums.write(first_sum, &sums);
            first_image += parts.images.images().len();
            first_sum += sums.len();
            self.senders.set(index, kernel_sender);
        }
        let longest = part.senders.iter().map(|sender| sender.plan().1.length()).max().unwrap_or(60);
        self.blank = vec![0; if resets_frames() { longest.max(60) } else { SHORTER_THAN_ANY_FRAME }];
        self.batch = part.shared.burst as u32;
        self.progress.set(0, Progress::default());
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

    /// Loads the program anew, with larger maps, where these do not suffice.
    fn check_room(&mut self, part: &TrialPart) -> Result<(), EngineError> {
        if part.senders.len() > MAXIMUM_SENDERS {
            let message = format!("there are {} streams, and the kernel makes {MAXIMUM_SENDERS}", part.senders.len());
            return Err(EngineError::new(ErrorKind::BadRequest, message, "send fewer streams"));
        }
        let (mut images, mut sums) = (0, 0);
        for sender in &part.senders {
            let (_, writer) = sender.plan();
            let parts = writer.parts().ok_or_else(|| {
                let message = "frames that differ in size, come from a file, or are of too many flows to be computed \
                               before, are not made in the kernel";
                EngineError::new(ErrorKind::BadRequest, message, "use `driver: net_af_xdp` for this traffic")
            })?;
            images += parts.images.images().len();
            sums += parts.images.sums().len();
        }
        if images > self.images.len() || sums > self.sums.len() {
            let (images, sums) = (images.next_power_of_two(), sums.next_power_of_two());
            let (images, sums) = (images.max(self.images.len()), sums.max(self.sums.len()));
            *self = Self::load(&self.interfaces.clone(), images, sums).map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    fn kernel_sender(
        &mut self,
        index: usize,
        sender: &Sender,
        (first_image, first_sum): (usize, usize),
    ) -> Result<KernelSender, EngineError> {
        let (pacer, writer) = sender.plan();
        let schedule = pacer.schedule();
        let Some(parts) = writer.parts().filter(|parts| parts.images.pieces() <= MAXIMUM_PIECES) else {
            let message = "flows that differ in more than 128 bytes of their headers are not made in the kernel";
            return Err(EngineError::new(ErrorKind::BadRequest, message, "use `driver: net_af_xdp` for this traffic"));
        };
        let mut template = TemplateBytes([0; TEMPLATE_BYTES]);
        template.0[..parts.constant.len()].copy_from_slice(parts.constant);
        self.templates.set(index, template);
        Ok(KernelSender {
            due_ns: schedule.next_tick,
            remainder: schedule.remainder,
            whole_ns: schedule.whole,
            numerator: schedule.numerator,
            denominator: schedule.denominator,
            left_in_burst: schedule.left_in_burst,
            burst_frames: schedule.burst_frames,
            intended: schedule.intended.unwrap_or(u64::MAX),
            catch_up_ns: schedule.catch_up_ticks,
            flows: parts.flows,
            first_flow: parts.first_flow,
            is_paced: schedule.is_paced.into(),
            port: sender.transmit_port as u32,
            length: parts.constant.len() as u32,
            signature_at: parts.signature_offset as u32,
            checksum_at: parts.checksum_offset.unwrap_or(0) as u32,
            image_at: parts.images.start() as u32,
            pieces: parts.images.pieces() as u32,
            first_image: first_image as u32,
            first_sum: first_sum as u32,
            gap_minimum_ns: u64::MAX,
            ..KernelSender::default()
        })
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
        self.progress.get(0).runs > 0
    }

    /// When everything was sent or given up, in nanoseconds since the epoch.
    pub fn finished_ns(&self) -> Option<u64> {
        let progress = self.progress.get(0);
        (progress.is_finished != 0).then_some(progress.finished_ns)
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
            let counts = SenderCounts {
                accepted: counted.sent,
                unsent_tester: counted.given_up,
                unsent_backpressure: 0,
                maximum_burst: counted.largest_burst as u32,
                bursts: counted.bursts,
                timed_bursts: progress.batches,
                burst_ticks: progress.batch_sum_ns,
            };
            sender.note(counts, TransmitGaps::counted(buckets, extremes)?);
            sender.count_rest();
        }
        part.gaps.note(progress.longest_gap_ns, progress.total_gap_ns, progress.gaps);
        (part.iterations, part.idle_iterations) = (progress.runs, progress.idle_runs);
        part.transmit_ticks = self.finished_ns().unwrap_or(elapsed_ns);
        Ok(())
    }
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
