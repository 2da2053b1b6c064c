//! The file of one capture: classic pcap or pcapng, with nanoseconds; the FCS, which no port hands out, is computed.
//!
//! The link type of pcap is plain Ethernet: the bits that would say how long the FCS is keep scapy and dpkt from reading
//! the file, and Wireshark finds an FCS by itself. A file of pcapng says it in an option.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Duration;

use flate2::Crc;
use nicbench_protocol::{CaptureFormat, CapturedFile, PortCapture};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, Endianness, PcapResult, TsResolution};

use crate::error::{EngineError, ErrorKind, io_error_of_pcap};
use crate::wire::ethernet::FCS_BYTES;

/// Of pcap's file and of its records.
const HEADER_BYTES: u64 = 24;
const RECORD_BYTES: u64 = 16;
/// Lengths of pcapng's blocks: the section header, and a frame's block without the frame, which is padded to words.
const SECTION_BYTES: u64 = 28;
const BLOCK_BYTES: u64 = 32;
const WORD_BYTES: u64 = 4;
/// Decimal digits of a second's fraction (pcapng, `if_tsresol`).
const NANOSECONDS: u8 = 9;
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

/// What a frame takes in a file.
fn record_bytes(format: CaptureFormat, record: &Record) -> u64 {
    let bytes = record.bytes.len() as u64;
    match format {
        CaptureFormat::Pcap => RECORD_BYTES + bytes,
        CaptureFormat::PcapNg => BLOCK_BYTES + bytes.next_multiple_of(WORD_BYTES),
    }
}

/// A file in one of the formats.
enum Writer {
    Pcap(PcapWriter<BufWriter<File>>),
    PcapNg(PcapNgWriter<BufWriter<File>>),
}

impl Writer {
    /// Writes the header of a file of what the port `name` receives; returns how long it is, too.
    fn begin(format: CaptureFormat, file: BufWriter<File>, name: &str) -> PcapResult<(Self, u64)> {
        if format == CaptureFormat::Pcap {
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
            return Ok((Self::Pcap(PcapWriter::with_header(file, header)?), HEADER_BYTES));
        }
        let mut writer = PcapNgWriter::with_endianness(file, Endianness::Little)?;
        let options = vec![
            InterfaceDescriptionOption::IfName(name.into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            InterfaceDescriptionOption::IfFcsLen(FCS_BYTES as u8),
        ];
        let linktype = DataLink::ETHERNET;
        let block = InterfaceDescriptionBlock { linktype, snaplen: LONGEST_BYTES, options };
        let bytes = SECTION_BYTES + writer.write_pcapng_block(block)? as u64;
        Ok((Self::PcapNg(writer), bytes))
    }

    fn write(&mut self, record: &Record) -> PcapResult<usize> {
        let timestamp = Duration::from_nanos(record.unix_ns);
        match self {
            Self::Pcap(writer) => writer.write_packet(&PcapPacket::new(timestamp, record.length, &record.bytes)),
            Self::PcapNg(writer) => writer.write_pcapng_block(EnhancedPacketBlock {
                interface_id: 0,
                timestamp,
                original_len: record.length,
                data: record.bytes.as_slice().into(),
                options: Vec::new(),
            }),
        }
    }

    fn into_file(self) -> BufWriter<File> {
        match self {
            Self::Pcap(writer) => writer.into_writer(),
            Self::PcapNg(writer) => writer.into_inner(),
        }
    }
}

/// The file of one capture.
pub struct CaptureFile {
    port: usize,
    path: String,
    /// `None` once it cannot be written any more.
    writer: Option<Writer>,
    format: CaptureFormat,
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
        let path = format!("{}{name}.{}", request.path_prefix, request.format.extension());
        let failed = |error: std::io::Error| {
            let message = format!("capture: {path} cannot be made: {error}");
            EngineError::new(ErrorKind::Io, message, "name a prefix in a folder that can be written")
        };
        let file = File::create(&path).map_err(failed)?;
        let begun = Writer::begin(request.format, BufWriter::new(file), name);
        let (writer, bytes) = begun.map_err(|error| failed(io_error_of_pcap(error)))?;
        Ok(Self {
            port,
            path,
            writer: Some(writer),
            format: request.format,
            snap_bytes: request.snap_bytes.map_or(usize::MAX, |bytes| bytes as usize),
            at_most_bytes: request.at_most_bytes,
            bytes,
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
        let needed = record_bytes(self.format, &record);
        if let Some(last) = &mut self.last {
            last.push_back(record);
            self.bytes += needed;
            while self.bytes > self.at_most_bytes {
                let Some(oldest) = last.pop_front() else { break };
                self.bytes -= record_bytes(self.format, &oldest);
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
        match writer.write(record) {
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
        let flushed = self.writer.take().map(|writer| writer.into_file().flush());
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
