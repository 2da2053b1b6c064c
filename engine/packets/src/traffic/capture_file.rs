//! Reads the Ethernet frames of a capture: classic pcap or pcapng, told apart by their first bytes.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

use crate::error::io_error_of_pcap;

/// The largest file that is read.
const LARGEST_FILE_BYTES: u64 = 256 << 20;
const MOST_FRAMES: usize = 1 << 20;
/// The first bytes of a pcapng file: the type of its section header.
const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// A frame of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFrame {
    pub bytes: Vec<u8>,
    /// When it was captured, since 1970; `None` where the file does not say.
    pub time_ns: Option<u64>,
}

/// The frames of the file at `path`, in its order; otherwise what is wrong with it.
pub fn read(path: &str) -> Result<Vec<FileFrame>, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".into());
    }
    if metadata.len() > LARGEST_FILE_BYTES {
        return Err(format!("it is larger than {} MiB", LARGEST_FILE_BYTES >> 20));
    }
    let mut first = [0; 4];
    file.read_exact(&mut first).map_err(|_| "it is too short for a capture".to_owned())?;
    file.rewind().map_err(|error| error.to_string())?;
    let reader = BufReader::new(file);
    let frames = if first == PCAPNG { read_pcapng(reader) } else { read_pcap(reader) }?;
    if frames.is_empty() { Err("it holds no frame".into()) } else { Ok(frames) }
}

fn read_pcap(reader: impl Read) -> Result<Vec<FileFrame>, String> {
    let mut reader = PcapReader::new(reader).map_err(|_| "it is neither pcap nor pcapng".to_owned())?;
    check_link(reader.header().datalink)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|error| broken(&frames, error))?;
        let time_ns = u64::try_from(packet.timestamp.as_nanos()).ok();
        keep(&mut frames, &packet.data, packet.orig_len, time_ns)?;
    }
    Ok(frames)
}

fn read_pcapng(reader: impl Read) -> Result<Vec<FileFrame>, String> {
    let mut reader = PcapNgReader::new(reader).map_err(|error| format!("it is no pcapng: {error}"))?;
    let mut frames = Vec::new();
    // Units a second of the time stamps of each interface.
    let mut units: Vec<u128> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.map_err(|error| broken(&frames, error))? {
            Block::InterfaceDescription(interface) => {
                check_link(interface.linktype)?;
                units.push(units_per_second(&interface));
            }
            Block::SectionHeader(_) => units.clear(),
            Block::EnhancedPacket(packet) => {
                // The library takes the number for nanoseconds, whatever the interface says.
                let number = packet.timestamp.as_nanos();
                let units = units.get(packet.interface_id as usize).copied();
                keep(&mut frames, &packet.data, packet.original_len, nanoseconds(number, units))?;
            }
            Block::SimplePacket(packet) => keep(&mut frames, &packet.data, packet.original_len, None)?,
            Block::Packet(packet) => {
                let units = units.get(usize::from(packet.interface_id)).copied();
                keep(&mut frames, &packet.data, packet.original_len, nanoseconds(packet.timestamp.into(), units))?;
            }
            _ => {}
        }
    }
    Ok(frames)
}

/// The option if_tsresol of an interface (draft-ietf-opsawg-pcapng 4.2): a power of ten, or of two with the highest bit;
/// microseconds where it is left out.
fn units_per_second(interface: &InterfaceDescriptionBlock<'_>) -> u128 {
    let resolution = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
        _ => None,
    });
    let resolution = resolution.unwrap_or(6);
    let (base, power): (u128, u32) =
        if resolution & 0x80 == 0 { (10, resolution.into()) } else { (2, (resolution & 0x7F).into()) };
    base.saturating_pow(power)
}

fn nanoseconds(number: u128, units: Option<u128>) -> Option<u64> {
    u64::try_from(number.checked_mul(1_000_000_000)? / units?.max(1)).ok()
}

fn check_link(link: DataLink) -> Result<(), String> {
    match link {
        DataLink::ETHERNET => Ok(()),
        other => Err(format!("it holds {other:?} and not Ethernet")),
    }
}

fn keep(frames: &mut Vec<FileFrame>, data: &[u8], original_bytes: u32, time_ns: Option<u64>) -> Result<(), String> {
    let number = frames.len() + 1;
    if data.len() < original_bytes as usize {
        return Err(format!("frame {number} was cut from {original_bytes} to {} bytes by its capture", data.len()));
    }
    if number > MOST_FRAMES {
        return Err(format!("it holds more than {MOST_FRAMES} frames"));
    }
    frames.push(FileFrame { bytes: data.to_vec(), time_ns });
    Ok(())
}

fn broken(frames: &[FileFrame], error: PcapError) -> String {
    format!("it is broken after frame {}: {}", frames.len(), io_error_of_pcap(error))
}
