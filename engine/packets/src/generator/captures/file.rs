//! The file of one capture: classic pcap with nanoseconds; the FCS, which no port hands out, is computed.
//!
//! The link type is plain Ethernet: the bits that would say how long the FCS is keep scapy and dpkt from reading the
//! file, and Wireshark finds an FCS by itself.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use flate2::Crc;
use nicbench_protocol::{CapturedFile, PortCapture};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, TsResolution};

use crate::error::{EngineError, ErrorKind, io_error_of_pcap};
use crate::wire::ethernet::FCS_BYTES;

const HEADER_BYTES: u64 = 24;
const RECORD_BYTES: u64 = 16;
/// Longer than any frame.
const LONGEST_BYTES: u32 = 262_144;

/// Frames on their way to the file.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    /// Of each: UNIX time, and its length.
    frames: Vec<(u64, usize)>,
}

impl Records {
    #[inline]
    pub fn push(&mut self, frame: &[u8], unix_ns: u64) {
        self.bytes.extend_from_slice(frame);
        self.frames.push((unix_ns, frame.len()));
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn frames(&self) -> u64 {
        self.frames.len() as u64
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.frames.iter().map(move |(unix_ns, length)| {
            let (frame, others) = rest.split_at(*length);
            rest = others;
            (*unix_ns, frame)
        })
    }
}

/// A frame with its FCS, as far as it is kept.
#[derive(Debug)]
struct Record {
    unix_ns: u64,
    length: u32,
    bytes: Vec<u8>,
}

/// The file of one capture.
pub struct CaptureFile {
    port: usize,
    path: String,
    /// `None` once it cannot be written any more.
    writer: Option<PcapWriter<BufWriter<File>>>,
    snap_bytes: usize,
    at_most_bytes: u64,
    bytes: u64,
    frames: u64,
    dropped: u64,
    error: Option<String>,
    /// Where the last frames are wanted: those of now.
    last: Option<VecDeque<Record>>,
}

impl CaptureFile {
    pub fn create(port: usize, name: &str, request: &PortCapture) -> Result<Self, EngineError> {
        let path = format!("{}{name}.pcap", request.path_prefix);
        let failed = |error: std::io::Error| {
            let message = format!("capture: {path} cannot be made: {error}");
            EngineError::new(ErrorKind::Io, message, "name a prefix in a folder that can be written")
        };
        let file = File::create(&path).map_err(failed)?;
        let header = PcapHeader {
            version_major: 2,
            version_minor: 4,
            ts_correction: 0,
            ts_accuracy: 0,
            snaplen: LONGEST_BYTES,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
        };
        let writer =
            PcapWriter::with_header(BufWriter::new(file), header).map_err(|error| failed(io_error_of_pcap(error)))?;
        Ok(Self {
            port,
            path,
            writer: Some(writer),
            snap_bytes: request.snap_bytes.map_or(usize::MAX, |bytes| bytes as usize),
            at_most_bytes: request.at_most_bytes,
            bytes: HEADER_BYTES,
            frames: 0,
            dropped: 0,
            error: None,
            last: request.overwrite.then(VecDeque::new),
        })
    }

    pub fn port(&self) -> usize {
        self.port
    }

    /// Takes frames in the order in which they arrived.
    pub fn write(&mut self, records: &Records) {
        for (unix_ns, frame) in records.iter() {
            let mut bytes = frame.to_vec();
            let mut crc = Crc::new();
            crc.update(frame);
            // IEEE 802.3 3.2.9: as it is on the wire, its bytes are those of the little-endian CRC-32.
            bytes.extend(crc.sum().to_le_bytes());
            bytes.truncate(self.snap_bytes);
            self.take(Record { unix_ns, length: frame.len() as u32 + FCS_BYTES, bytes });
        }
    }

    fn take(&mut self, record: Record) {
        let needed = RECORD_BYTES + record.bytes.len() as u64;
        if let Some(last) = &mut self.last {
            last.push_back(record);
            self.bytes += needed;
            while self.bytes > self.at_most_bytes {
                let Some(oldest) = last.pop_front() else { break };
                self.bytes -= RECORD_BYTES + oldest.bytes.len() as u64;
                self.dropped += 1;
            }
            return;
        }
        if self.bytes + needed > self.at_most_bytes {
            self.dropped += 1;
            return;
        }
        self.bytes += needed;
        self.write_record(&record);
    }

    fn write_record(&mut self, record: &Record) {
        let Some(writer) = &mut self.writer else {
            self.dropped += 1;
            return;
        };
        let packet = PcapPacket::new(Duration::from_nanos(record.unix_ns), record.length, &record.bytes);
        match writer.write_packet(&packet) {
            Ok(_) => self.frames += 1,
            Err(error) => {
                self.error = Some(io_error_of_pcap(error).to_string());
                self.writer = None;
                self.dropped += 1;
            }
        }
    }

    /// Completes the file.
    pub fn finish(mut self) -> CapturedFile {
        for record in self.last.take().into_iter().flatten() {
            self.write_record(&record);
        }
        let flushed = self.writer.take().map(|writer| writer.into_writer().flush());
        if let Some(Err(error)) = flushed {
            self.error = Some(error.to_string());
        }
        self.described()
    }

    /// As it is when the capture begins.
    pub fn empty(&self) -> CapturedFile {
        self.described()
    }

    fn described(&self) -> CapturedFile {
        CapturedFile {
            port: self.port,
            path: self.path.clone(),
            frames: self.frames,
            bytes: self.bytes,
            dropped: self.dropped,
            error: self.error.clone(),
        }
    }
}
