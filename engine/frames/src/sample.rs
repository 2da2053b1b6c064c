//! The times of one frame, and the two files that they may be written to: binary records, and CSV for people.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};

/// Version of the records (protocol/frames.md).
pub const FORMAT: u32 = 1;
/// The bytes at the beginning of the file.
pub const MAGIC: [u8; 8] = *b"NBSAMPLE";
pub const HEADER_BYTES: usize = 64;
pub const RECORD_BYTES: usize = 96;
/// In place of a time that there is not.
pub const NONE: i64 = i64::MIN;

const MEASURED: u16 = 1;
const DROPPED: u16 = 2;

/// The times of one frame: since the first frame's turn, and durations; `None` where there was no such step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The position of the frame in the work, from 0.
    pub position: u64,
    /// Its number, or its index among found files.
    pub frame: u64,
    pub thread: u16,
    pub is_measured: bool,
    pub bytes: u64,
    /// When it had its turn: by the schedule, or without one when a worker took it.
    pub turn_ns: u64,
    pub begun_ns: u64,
    pub open_ns: Option<u64>,
    pub io_ns: u64,
    pub sync_ns: Option<u64>,
    pub close_ns: Option<u64>,
    pub completed_ns: u64,
    /// Completed less due: below 0 for a frame in time; `None` without a limit.
    pub late_by_ns: Option<i64>,
}

impl Sample {
    /// The time from its beginning to its end.
    pub fn completion_ns(&self) -> u64 {
        self.completed_ns.saturating_sub(self.begun_ns)
    }

    pub fn is_dropped(&self) -> bool {
        self.late_by_ns.is_some_and(|late| late > 0)
    }

    fn record(&self) -> [u8; RECORD_BYTES] {
        let flags = if self.is_measured { MEASURED } else { 0 } | if self.is_dropped() { DROPPED } else { 0 };
        let optional = |time: Option<u64>| time.map_or(NONE, |time| time as i64);
        let fields = [
            self.position as i64,
            self.frame as i64,
            self.bytes as i64,
            self.turn_ns as i64,
            self.begun_ns as i64,
            optional(self.open_ns),
            self.io_ns as i64,
            optional(self.sync_ns),
            optional(self.close_ns),
            self.completed_ns as i64,
            self.late_by_ns.unwrap_or(NONE),
        ];
        let mut record = [0; RECORD_BYTES];
        record[..2].copy_from_slice(&self.thread.to_le_bytes());
        record[2..4].copy_from_slice(&flags.to_le_bytes());
        for (place, field) in record[8..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        record
    }

    fn line(&self) -> String {
        let text = |time: Option<u64>| time.map_or(String::new(), |time| time.to_string());
        format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            self.position,
            self.frame,
            self.thread,
            u8::from(self.is_measured),
            u8::from(self.is_dropped()),
            self.bytes,
            self.turn_ns,
            self.begun_ns,
            text(self.open_ns),
            self.io_ns,
            text(self.sync_ns),
            text(self.close_ns),
            self.completed_ns,
            self.late_by_ns.map_or(String::new(), |late| late.to_string()),
        )
    }
}

const COLUMNS: &str = "position,frame,thread,measured,dropped,bytes,turn_ns,begun_ns,open_ns,io_ns,sync_ns,close_ns,completed_ns,late_by_ns\n";

/// Where samples go; whatever was given to it is in the files when `add` returns, so that a kill loses a second at
/// most.
#[derive(Debug, Default)]
pub struct SampleFiles {
    binary: Option<BufWriter<File>>,
    csv: Option<BufWriter<File>>,
}

impl SampleFiles {
    /// Makes the files that are asked for. `began_at_ns`: the first frame's turn on the monotonic clock.
    pub fn create(binary: Option<&str>, csv: Option<&str>, began_at_ns: u64) -> Result<Self, String> {
        let mut files = Self { binary: open(binary)?, csv: open(csv)? };
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        header[12..16].copy_from_slice(&(HEADER_BYTES as u32).to_le_bytes());
        header[16..20].copy_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
        header[24..32].copy_from_slice(&began_at_ns.to_le_bytes());
        files.write(&header, COLUMNS.as_bytes()).map_err(|error| format!("the samples cannot be written: {error}"))?;
        Ok(files)
    }

    pub fn add(&mut self, samples: &[Sample]) -> io::Result<()> {
        if self.binary.is_none() && self.csv.is_none() {
            return Ok(());
        }
        for sample in samples {
            if let Some(binary) = &mut self.binary {
                binary.write_all(&sample.record())?;
            }
            if let Some(csv) = &mut self.csv {
                csv.write_all(sample.line().as_bytes())?;
            }
        }
        self.write(&[], &[])
    }

    fn write(&mut self, bytes: &[u8], text: &[u8]) -> io::Result<()> {
        for (file, content) in [(&mut self.binary, bytes), (&mut self.csv, text)] {
            if let Some(file) = file {
                file.write_all(content)?;
                file.flush()?;
            }
        }
        Ok(())
    }
}

fn open(path: Option<&str>) -> Result<Option<BufWriter<File>>, String> {
    let Some(path) = path else { return Ok(None) };
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    file.map(|file| Some(BufWriter::new(file))).map_err(|error| format!("{path} cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: Sample = Sample {
        position: 5,
        frame: 7,
        thread: 1,
        is_measured: true,
        bytes: 4096,
        turn_ns: 100,
        begun_ns: 110,
        open_ns: Some(10),
        io_ns: 20,
        sync_ns: None,
        close_ns: Some(5),
        completed_ns: 145,
        late_by_ns: Some(-3),
    };

    #[test]
    fn a_record_holds_its_fields_at_the_documented_places() {
        let record = Sample { late_by_ns: Some(9), ..SAMPLE }.record();
        let at = |index: usize| i64::from_le_bytes(std::array::from_fn(|byte| record[8 + 8 * index + byte]));
        assert_eq!(record[..8], [1, 0, 3, 0, 0, 0, 0, 0]);
        let fields: Vec<i64> = (0..11).map(at).collect();
        assert_eq!(fields, [5, 7, 4096, 100, 110, 10, 20, NONE, 5, 145, 9]);
    }

    #[test]
    fn text_has_as_many_columns_as_its_heading_and_nothing_where_nothing_was() {
        assert_eq!(SAMPLE.line(), "5,7,1,1,0,4096,100,110,10,20,,5,145,-3\n");
        assert_eq!(COLUMNS.split(',').count(), SAMPLE.line().split(',').count());
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let error = SampleFiles::create(Some("/no/such/place/samples"), None, 0).unwrap_err();
        assert!(error.contains("/no/such/place/samples"), "{error}");
    }
}
