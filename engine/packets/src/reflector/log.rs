//! The fate of each frame, in the order in which frames left or were dropped. Kept in memory, written at the end.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::faults::{Change, Dropped};
use crate::signature::{Owner, Signature};

/// What happened to a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    Sent,
    /// Left as the second of two copies.
    Copy,
    CorruptedPayload,
    CorruptedSignature,
    CorruptedLength,
    Lost,
    DroppedRate,
    DroppedHeldFull,
    /// Still under way when the trial or the forwarder ended.
    DroppedAtEnd,
}

impl From<Change> for Fate {
    fn from(change: Change) -> Self {
        match change {
            Change::None => Self::Sent,
            Change::Copy => Self::Copy,
            Change::CorruptedPayload => Self::CorruptedPayload,
            Change::CorruptedSignature => Self::CorruptedSignature,
            Change::CorruptedLength => Self::CorruptedLength,
        }
    }
}

impl From<Dropped> for Fate {
    fn from(dropped: Dropped) -> Self {
        match dropped {
            Dropped::Lost => Self::Lost,
            Dropped::Rate => Self::DroppedRate,
            Dropped::HeldFull => Self::DroppedHeldFull,
        }
    }
}

/// One frame. Times are nanoseconds since the loop began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub trial: u32,
    pub direction: u8,
    pub fate: Fate,
    /// Read as the frame came, before anything was done to it.
    pub owner: Owner,
    pub received_ns: u64,
    /// `None` where it did not leave.
    pub sent_ns: Option<u64>,
}

/// A record as a line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    trial: u32,
    direction: u8,
    fate: Fate,
    flow: Option<u32>,
    sequence: Option<u32>,
    stamp_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    earlier: bool,
    received_ns: u64,
    sent_ns: Option<u64>,
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    format: String,
    records: u64,
    left_out: u64,
}

const FORMAT: &str = "nicbench fates 1.0";

/// The fates of frames, kept in memory until they are written.
#[derive(Debug)]
pub struct FateLog {
    records: Vec<Record>,
    capacity: usize,
    left_out: u64,
}

impl FateLog {
    /// Keeps `capacity` records; later ones are counted only.
    pub fn new(capacity: usize) -> Self {
        Self { records: Vec::new(), capacity, left_out: 0 }
    }

    #[inline]
    pub fn add(&mut self, record: Record) {
        if self.records.len() < self.capacity {
            self.records.push(record);
        } else {
            self.left_out += 1;
        }
    }

    pub fn records(&self) -> &[Record] {
        &self.records
    }

    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Takes the records, and goes on without any.
    pub fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Writes all of it to `file`, whole or not at all.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let name = file.file_name().ok_or_else(|| io::Error::other("the name of the file is missing"))?;
        let temporary = file.with_file_name(format!(".{}.tmp", name.to_string_lossy()));
        let mut output = BufWriter::new(std::fs::File::create(&temporary)?);
        let heading = Heading { format: FORMAT.into(), records: self.records.len() as u64, left_out: self.left_out };
        line(&mut output, &heading)?;
        self.records.iter().try_for_each(|record| line(&mut output, &Line::from(record)))?;
        output.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&temporary, file)
    }
}

/// Reads a log back; an error names the line.
pub fn read(text: &str) -> Result<Vec<Record>, String> {
    let mut lines = text.lines().enumerate();
    let heading = lines.next().and_then(|(_, text)| serde_json::from_str::<Heading>(text).ok());
    if heading.is_none_or(|heading| heading.format != FORMAT) {
        return Err(format!("line 1 is not the heading of {FORMAT:?}"));
    }
    lines
        .map(|(index, text)| {
            let line: Line = serde_json::from_str(text).map_err(|error| format!("line {}: {error}", index + 1))?;
            Ok(Record::from(line))
        })
        .collect()
}

fn line(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}

impl From<&Record> for Line {
    fn from(record: &Record) -> Self {
        let signature = match record.owner {
            Owner::Ours(signature) => Some(signature),
            Owner::EarlierTrial | Owner::Unknown => None,
        };
        Self {
            trial: record.trial,
            direction: record.direction,
            fate: record.fate,
            flow: signature.map(|signature| signature.flow),
            sequence: signature.map(|signature| signature.sequence),
            stamp_ns: signature.map(|signature| signature.time_ns),
            earlier: record.owner == Owner::EarlierTrial,
            received_ns: record.received_ns,
            sent_ns: record.sent_ns,
        }
    }
}

impl From<Line> for Record {
    fn from(line: Line) -> Self {
        let owner = match (line.flow, line.sequence, line.stamp_ns) {
            (Some(flow), Some(sequence), Some(time_ns)) => Owner::Ours(Signature { flow, sequence, time_ns }),
            _ if line.earlier => Owner::EarlierTrial,
            _ => Owner::Unknown,
        };
        let Line { trial, direction, fate, received_ns, sent_ns, .. } = line;
        Self { trial, direction, fate, owner, received_ns, sent_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let ours = Owner::Ours(Signature { flow: 3, sequence: 17, time_ns: 41_200 });
        let record = |fate, owner, sent_ns| Record { trial: 2, direction: 1, fate, owner, received_ns: 5, sent_ns };
        vec![
            record(Fate::Sent, ours, Some(9)),
            record(Fate::DroppedRate, ours, None),
            record(Fate::Copy, Owner::Unknown, Some(10)),
            record(Fate::Lost, Owner::EarlierTrial, None),
        ]
    }

    #[test]
    fn what_is_written_is_read_back_and_what_found_no_room_is_counted() {
        let file = std::env::temp_dir().join(format!("nicbench-fates-{}.ndjson", std::process::id()));
        let mut log = FateLog::new(4);
        records().into_iter().chain(records()).for_each(|record| log.add(record));
        log.write(&file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(text.starts_with(r#"{"format":"nicbench fates 1.0","records":4,"left_out":4}"#), "{text}");
        assert!(text.contains(
            r#""fate":"dropped_rate","flow":3,"sequence":17,"stamp_ns":41200,"received_ns":5,"sent_ns":null"#
        ));
        assert_eq!(read(&text).unwrap(), records());
        assert_eq!(log.take(), records());
        assert!(log.records().is_empty());
    }

    #[test]
    fn text_that_is_no_log_is_refused_with_its_line() {
        assert!(read("").unwrap_err().contains("line 1"));
        let torn = "{\"format\":\"nicbench fates 1.0\",\"records\":1,\"left_out\":0}\n{\"trial\":1";
        assert!(read(torn).unwrap_err().contains("line 2"));
    }
}
