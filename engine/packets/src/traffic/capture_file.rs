//! Reads the Ethernet frames of a capture: classic pcap or pcapng, told apart by their first bytes.
//!
//! Frames may be captured with their FCS: the file says so, or each of them ends with the checksum of the rest, as in
//! the captures that the generator writes. It is no part of what is sent again.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use flate2::Crc;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

use crate::error::io_error_of_pcap;

/// The largest file that is read.
const LARGEST_FILE_BYTES: u64 = 256 << 20;
const MOST_FRAMES: usize = 1 << 20;
const FCS_BYTES: usize = 4;
const HEADER_BYTES: usize = 14;
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
    let mut frames = if first == PCAPNG { read_pcapng(reader) } else { read_pcap(reader) }?;
    if frames.is_empty() {
        return Err("it holds no frame".into());
    }
    if frames.iter().all(|frame| ends_with_fcs(&frame.bytes)) {
        frames.iter_mut().for_each(|frame| frame.bytes.truncate(frame.bytes.len() - FCS_BYTES));
    }
    Ok(frames)
}

/// Whether the last bytes of a frame are the checksum of those before (IEEE 802.3 section 3.2.9).
fn ends_with_fcs(bytes: &[u8]) -> bool {
    bytes.split_last_chunk::<FCS_BYTES>().is_some_and(|(frame, fcs)| {
        let mut crc = Crc::new();
        crc.update(frame);
        frame.len() >= HEADER_BYTES && crc.sum().to_le_bytes() == *fcs
    })
}

fn read_pcap(reader: impl Read) -> Result<Vec<FileFrame>, String> {
    let mut reader = PcapReader::new(reader).map_err(|_| "it is neither pcap nor pcapng".to_owned())?;
    let link = u32::from(reader.header().datalink);
    check_link(DataLink::from(link & 0xFFFF))?;
    // The upper bits have the length of the FCS, in words of two bytes (draft-ietf-opsawg-pcap).
    let fcs_bytes = if link & 0x0400_0000 == 0 { 0 } else { 2 * (link >> 28) as usize };
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|error| broken(&frames, error))?;
        let time_ns = u64::try_from(packet.timestamp.as_nanos()).ok();
        keep(&mut frames, &packet.data, packet.orig_len, fcs_bytes, time_ns)?;
    }
    Ok(frames)
}

fn read_pcapng(reader: impl Read) -> Result<Vec<FileFrame>, String> {
    let mut reader = PcapNgReader::new(reader).map_err(|error| format!("it is no pcapng: {error}"))?;
    let mut frames = Vec::new();
    // Units a second of the time stamps of each interface, and the length of its FCS.
    let mut interfaces: Vec<(u128, usize)> = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.map_err(|error| broken(&frames, error))? {
            Block::InterfaceDescription(interface) => {
                check_link(interface.linktype)?;
                interfaces.push((units_per_second(&interface), fcs_bytes(&interface)));
            }
            Block::SectionHeader(_) => interfaces.clear(),
            Block::EnhancedPacket(packet) => {
                // The library takes the number for nanoseconds, whatever the interface says.
                let number = packet.timestamp.as_nanos();
                let (units, fcs_bytes) = interfaces.get(packet.interface_id as usize).copied().unzip();
                let time_ns = nanoseconds(number, units);
                keep(&mut frames, &packet.data, packet.original_len, fcs_bytes.unwrap_or(0), time_ns)?;
            }
            Block::SimplePacket(packet) => {
                let fcs_bytes = interfaces.first().map_or(0, |(_, fcs_bytes)| *fcs_bytes);
                keep(&mut frames, &packet.data, packet.original_len, fcs_bytes, None)?;
            }
            Block::Packet(packet) => {
                let (units, fcs_bytes) = interfaces.get(usize::from(packet.interface_id)).copied().unzip();
                let time_ns = nanoseconds(packet.timestamp.into(), units);
                keep(&mut frames, &packet.data, packet.original_len, fcs_bytes.unwrap_or(0), time_ns)?;
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

/// The option if_fcslen of an interface; some write it in bits, and some in bytes.
fn fcs_bytes(interface: &InterfaceDescriptionBlock<'_>) -> usize {
    let told = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfFcsLen(length) => Some(usize::from(*length)),
        _ => None,
    });
    told.map_or(0, |length| if length < 8 { length } else { length / 8 })
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

fn keep(
    frames: &mut Vec<FileFrame>,
    data: &[u8],
    original_bytes: u32,
    fcs_bytes: usize,
    time_ns: Option<u64>,
) -> Result<(), String> {
    let number = frames.len() + 1;
    if data.len() < original_bytes as usize {
        return Err(format!("frame {number} was cut from {original_bytes} to {} bytes by its capture", data.len()));
    }
    if number > MOST_FRAMES {
        return Err(format!("it holds more than {MOST_FRAMES} frames"));
    }
    let end = data.len().saturating_sub(fcs_bytes);
    if end < HEADER_BYTES {
        return Err(format!("frame {number} has {end} bytes, and the header of Ethernet alone {}", HEADER_BYTES));
    }
    frames.push(FileFrame { bytes: data[..end].to_vec(), time_ns });
    Ok(())
}

fn broken(frames: &[FileFrame], error: PcapError) -> String {
    format!("it is broken after frame {}: {}", frames.len(), io_error_of_pcap(error))
}

#[cfg(test)]
mod tests {
    use super::{Crc, DataLink, read};

    /// The lengths of the frames that are read of a pcap with this link type.
    fn lengths(name: &str, link: u32, frames: &[Vec<u8>]) -> Vec<usize> {
        let mut bytes = Vec::new();
        for word in [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65535, link] {
            bytes.extend(word.to_le_bytes());
        }
        for frame in frames {
            for word in [1, 0, frame.len() as u32, frame.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        let path = std::env::temp_dir().join(format!("nicbench-{name}-{}.pcap", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let read = read(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        read.unwrap().iter().map(|frame| frame.bytes.len()).collect()
    }

    fn with_fcs(length: usize) -> Vec<u8> {
        let mut frame = vec![7; length];
        let mut crc = Crc::new();
        crc.update(&frame);
        frame.extend(crc.sum().to_le_bytes());
        frame
    }

    #[test]
    fn an_fcs_that_the_file_declares_or_every_frame_ends_with_is_not_sent_again() {
        let ethernet = u32::from(DataLink::ETHERNET);
        assert_eq!(lengths("declared", 0x2400_0001, &[vec![7; 104], vec![7; 68]]), [100, 64]);
        assert_eq!(lengths("undeclared", ethernet, &[with_fcs(100), with_fcs(60)]), [100, 60]);
        assert_eq!(lengths("without", ethernet, &[with_fcs(100), vec![7; 60]]), [104, 60]);
    }
}
