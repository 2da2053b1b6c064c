//! The command line: the fields of `configure` as options.

use clap::{Args, Parser, Subcommand, ValueEnum};
use nicbench_protocol::{FrameOrder, FramesConfigure, FramesContent, FramesEngine, FramesTask, SyncPolicy, Verify};

/// Media frames, written and read as recorders and players do it, each one timed.
///
/// Without arguments it speaks the protocol of nicbench on stdin and stdout.
#[derive(Debug, Parser)]
#[command(name = "nicbench-frames", version, max_term_width = 110)]
pub struct Options {
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Write frames to be read later, as fast as it goes
    Prepare(Work),
    /// Write frames; those that were written there before are removed first
    Write(Work),
    /// Read frames
    Read(Work),
    /// Remove the frames that were written there, and nothing else
    Clean {
        /// Where they are
        directory: String,
    },
}

/// As in protocol/frames.md.
#[derive(Debug, Args)]
pub struct Work {
    /// Where the frames are, or will be
    directory: String,
    /// Size of a frame: sd, hd, uhd, 2k, 4k, 8k, each with -10 (DPX, default), -12, -16 or -exr (sizes vary)
    #[arg(long, default_value = "4k")]
    profile: String,
    /// Size of a frame in place of the profile's, as in 8m (k, m, g: powers of 1024)
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    frame_size: Option<u64>,
    /// Header before each frame, in place of the profile's 65536
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    header_size: Option<u64>,
    /// How many frames; default: all that are there (read), or as many as --fps and --seconds need (write)
    #[arg(long)]
    frames: Option<u64>,
    /// End after so many seconds of measurement
    #[arg(long)]
    seconds: Option<f64>,
    /// Seconds at the beginning that are not measured
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS")]
    warm_up: f64,
    /// Begin so many seconds after everything is ready: several processes then begin one after the other
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", value_parser = wait)]
    pub after: f64,
    /// Frames per second; a frame that is not complete when it is due counts as dropped. Default: as fast as it goes
    #[arg(long)]
    fps: Option<f64>,
    /// A frame is due so many frame times after its turn
    #[arg(long, default_value_t = 1, value_name = "FRAMES")]
    read_ahead: u32,
    #[arg(long, value_enum, default_value = "forward")]
    order: Order,
    /// Of content, sizes and random order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Workers, each with requests of its own
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// auto: sync where the depth is 1, else io-uring, and threads where the kernel has none
    #[arg(long, value_enum, default_value = "auto")]
    engine: Engine,
    /// Requests in flight, of each worker
    #[arg(long, default_value_t = 4)]
    depth: u32,
    /// Size of one request; `frame`: a whole frame
    #[arg(long, default_value = "1m", value_name = "BYTES", value_parser = request)]
    request: u64,
    /// Past the page cache (O_DIRECT)
    #[arg(long)]
    direct: bool,
    /// When written data must be on the disk
    #[arg(long, value_enum, default_value = "none")]
    sync: Sync,
    /// One file holds all frames
    #[arg(long)]
    streamed: bool,
    /// File names, as in shot_%06d.dpx [default: frame_%06d.dpx]
    #[arg(long)]
    pattern: Option<String>,
    /// Number of the first frame
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    first: u64,
    /// Read files of somebody else, whatever sizes they have
    #[arg(long)]
    existing: bool,
    /// What is written: unique, or what repeats itself after 1 MiB, with a stamp in every 4096 bytes or in a frame's
    /// first ones alone
    #[arg(long, value_enum, default_value = "unique")]
    content: Kind,
    /// What is compared of what was read: the stamp of every 4096 bytes, or every byte
    #[arg(long, value_enum, default_value = "blocks")]
    verify: Compare,
    /// Begin again after the last frame, until the time is over
    #[arg(long)]
    repeat: bool,
    /// Write even where it does not fit
    #[arg(long)]
    ignore_space: bool,
    /// CPUs to run on, as in 0,2
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Write every frame's times, as binary records (protocol/frames.md)
    #[arg(long, value_name = "FILE")]
    samples: Option<String>,
    /// Write every frame's times, as text
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,
    /// Print the result as JSON, and nothing else, on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    Forward,
    Reverse,
    Random,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    Auto,
    Sync,
    IoUring,
    Threads,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sync {
    None,
    Frame,
    End,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    Unique,
    Stamped,
    Same,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Compare {
    None,
    Blocks,
    Full,
}

impl Work {
    /// The same as a request.
    pub fn configure(self, task: FramesTask) -> FramesConfigure {
        FramesConfigure {
            task,
            directory: self.directory,
            profile: self.profile,
            frame_bytes: self.frame_size,
            header_bytes: self.header_size,
            frames: self.frames,
            duration_s: self.seconds,
            warm_up_s: self.warm_up,
            frames_per_s: self.fps,
            read_ahead_frames: self.read_ahead,
            order: match self.order {
                Order::Forward => FrameOrder::Forward,
                Order::Reverse => FrameOrder::Reverse,
                Order::Random => FrameOrder::Random,
            },
            seed: self.seed,
            threads: self.threads,
            engine: match self.engine {
                Engine::Auto => FramesEngine::Auto,
                Engine::Sync => FramesEngine::Sync,
                Engine::IoUring => FramesEngine::IoUring,
                Engine::Threads => FramesEngine::Threads,
            },
            depth: self.depth,
            request_bytes: self.request,
            direct: self.direct,
            sync: match self.sync {
                Sync::None => SyncPolicy::None,
                Sync::Frame => SyncPolicy::Frame,
                Sync::End => SyncPolicy::End,
            },
            streamed: self.streamed,
            pattern: self.pattern,
            first: self.first,
            existing: self.existing,
            content: match self.content {
                Kind::Unique => FramesContent::Unique,
                Kind::Stamped => FramesContent::Stamped,
                Kind::Same => FramesContent::Same,
            },
            verify: match self.verify {
                Compare::None => Verify::None,
                Compare::Blocks => Verify::Blocks,
                Compare::Full => Verify::Full,
            },
            repeat: self.repeat,
            ignore_space: self.ignore_space,
            samples: self.samples,
            csv: self.csv,
            cpus: self.cpus,
        }
    }
}

/// `4096`, `64k`, `8m`, `1g`: powers of 1024, with `iB` or without.
fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    let end = lower.find(|one: char| !one.is_ascii_digit()).unwrap_or(lower.len());
    let (digits, unit) = lower.split_at(end);
    let factor = match unit.trim_end_matches("ib") {
        "" | "b" => Some(1),
        "k" => Some(1 << 10),
        "m" => Some(1 << 20),
        "g" => Some(1 << 30),
        _ => None,
    };
    let number = digits.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    number.ok_or_else(|| "a number with k, m or g (powers of 1024), or without".into())
}

fn request(text: &str) -> Result<u64, String> {
    if text == "frame" { Ok(0) } else { bytes(text) }
}

/// A day at most: no ramp is longer.
fn wait(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "seconds, from 0 to 86400".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_the_protocol_leaves_out() {
        Options::command().debug_assert();
        let options = Options::try_parse_from(["nicbench-frames", "read", "/d"]).unwrap();
        let Task::Read(work) = options.task else { panic!() };
        let expected = FramesConfigure { directory: "/d".into(), ..FramesConfigure::default() };
        assert_eq!(work.configure(FramesTask::Read), expected);
    }

    #[test]
    fn a_wait_is_no_longer_than_a_day() {
        assert_eq!(["0", "0.5", "86400"].map(|text| wait(text).unwrap()), [0.0, 0.5, 86_400.0]);
        assert!(["-1", "1e9", "NaN", "soon", ""].iter().all(|text| wait(text).is_err()));
    }

    #[test]
    fn sizes_have_units_of_1024() {
        let sizes = ["5", "64k", "8M", "1GiB", "7b"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [5, 64 << 10, 8 << 20, 1 << 30, 7]);
        assert!(["", "k", "1t", "-1", "1.5m", "99999999999g"].iter().all(|text| bytes(text).is_err()));
        assert_eq!((request("frame"), request("4k")), (Ok(0), Ok(4096)));
    }
}
