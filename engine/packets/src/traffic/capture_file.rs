//! Reads the Ethernet frames of a capture: classic pcap or pcapng, told apart by their first bytes.
//!
//! Frames may be captured with their FCS: the file says so, or each of them ends with the checksum of the rest, as in
//! the captures that the generator writes. It is no part of what is sent again.

use flate2::Crc;
use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;

/// The largest file that is read.
const LARGEST_FILE_BYTES: u64 = 256 << 20;
const MOST_FRAMES: usize = 1 << 20;
const FCS_BYTES: usize = 4;
const HEADER_BYTES: usize = 14;
/// The first bytes of a pcapng file: the type of its section header.
const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];
const ETHERNET: u32 = 1;
// Types of blocks.
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
// Options of an interface: if_tsresol, if_fcslen.
const TIME_OPTION: usize = 9;
const FCS_OPTION: usize = 13;

/// A frame of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFrame {
    pub bytes: Vec<u8>,
    /// When it was captured, since 1970; `None` where the file does not say.
    pub time_ns: Option<u64>,
}

/// The frames of the file at `path`, in its order; otherwise what is wrong with it.
pub fn read(path: &str) -> Result<Vec<FileFrame>, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a file".into());
    }
    if metadata.len() > LARGEST_FILE_BYTES {
        return Err(format!("it is larger than {} MiB", LARGEST_FILE_BYTES >> 20));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    if bytes.len() < PCAPNG.len() {
        return Err("it is too short for a capture".into());
    }
    let mut frames = if bytes.starts_with(&PCAPNG) { read_pcapng(&bytes) } else { read_pcap(&bytes) }?;
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

/// Reads what libpcap reads: the limits that a header states bind no record.
fn read_pcap(bytes: &[u8]) -> Result<Vec<FileFrame>, String> {
    let mut reader = PcapReader::new(bytes).map_err(|_| "it is neither pcap nor pcapng".to_owned())?;
    let header = reader.header();
    let link = u32::from(header.datalink);
    // The upper bits have the length of the FCS, in words of two bytes (draft-ietf-opsawg-pcap).
    let fcs_bytes = if link & 0x0400_0000 == 0 { 0 } else { 2 * (link >> 28) as usize };
    let interface = Interface { link: link & 0xFFFF, fcs_bytes, units_per_second: units_of(header.ts_resolution) };
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_raw_packet() {
        let packet = packet.map_err(|_| broken(&frames))?;
        let units = u128::from(packet.ts_sec) * interface.units_per_second + u128::from(packet.ts_frac);
        keep(&mut frames, &packet.data, packet.orig_len, &interface, Some(units))?;
    }
    Ok(frames)
}

fn units_of(resolution: TsResolution) -> u128 {
    match resolution {
        TsResolution::MicroSecond => 1_000_000,
        TsResolution::NanoSecond => 1_000_000_000,
    }
}

/// An interface on which frames were captured.
struct Interface {
    link: u32,
    fcs_bytes: usize,
    units_per_second: u128,
}

/// Whole numbers of a pcapng section, in its order of bytes.
struct Fields<'a> {
    bytes: &'a [u8],
    is_big_endian: bool,
}

impl Fields<'_> {
    fn u16(&self, at: usize) -> Option<usize> {
        let word: [u8; 2] = self.bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if self.is_big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }.into())
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let word: [u8; 4] = self.bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) })
    }
}

/// Reads the blocks of packets (draft-ietf-opsawg-pcapng); comments and blocks of other kinds may hold anything.
fn read_pcapng(bytes: &[u8]) -> Result<Vec<FileFrame>, String> {
    let mut frames = Vec::new();
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut fields = Fields { bytes, is_big_endian: false };
    let mut place = 0;
    while place < bytes.len() {
        if bytes[place..].starts_with(&PCAPNG) {
            fields.is_big_endian = bytes[place..].get(8..12) == Some(&[0x1A, 0x2B, 0x3C, 0x4D]);
            interfaces.clear();
        }
        let end = fields.u32(place + 4).map(|length| place + length as usize);
        let Some(end) = end.filter(|end| (place + 12..=bytes.len()).contains(end)) else {
            return Err(broken(&frames));
        };
        let block = Fields { bytes: &bytes[..end - 4], ..fields };
        read_block(&block, place, &mut interfaces, &mut frames).unwrap_or_else(|| Err(broken(&frames)))?;
        place = end;
    }
    Ok(frames)
}

/// Reads the block at `place`; `None` where it ends too early.
fn read_block(
    block: &Fields<'_>,
    place: usize,
    interfaces: &mut Vec<Interface>,
    frames: &mut Vec<FileFrame>,
) -> Option<Result<(), String>> {
    let kind = block.u32(place)?;
    let (number, at, captured, original) = match kind {
        INTERFACE => {
            interfaces.push(read_interface(block, place)?);
            return Some(Ok(()));
        }
        PACKET | OLD_PACKET => {
            let number = if kind == PACKET { block.u32(place + 8)? as usize } else { block.u16(place + 8)? };
            (number, place + 28, block.u32(place + 20)?, block.u32(place + 24)?)
        }
        SIMPLE_PACKET => {
            let original = block.u32(place + 8)?;
            (0, place + 12, original.min((block.bytes.len() - place - 12) as u32), original)
        }
        _ => return Some(Ok(())),
    };
    let data = block.bytes.get(at..at.checked_add(captured as usize)?)?;
    let Some(interface) = interfaces.get(number) else {
        return Some(Err(format!("frame {} is of an interface that it does not describe", frames.len() + 1)));
    };
    let units = if kind == SIMPLE_PACKET {
        None
    } else {
        Some(u128::from(block.u32(place + 12)?) << 32 | u128::from(block.u32(place + 16)?))
    };
    Some(keep(frames, data, original, interface, units))
}

/// Reads the link type of an interface, and of its options the unit of times and the length of the FCS.
fn read_interface(block: &Fields<'_>, place: usize) -> Option<Interface> {
    let mut interface = Interface { link: block.u16(place + 8)? as u32, fcs_bytes: 0, units_per_second: 1_000_000 };
    let mut at = place + 16;
    while let (Some(option), Some(length)) = (block.u16(at), block.u16(at + 2)) {
        match (option, block.bytes.get(at + 4), length) {
            // A power of ten, or of two with the highest bit.
            (TIME_OPTION, Some(value), 1) => {
                let base: u128 = if value & 0x80 == 0 { 10 } else { 2 };
                interface.units_per_second = base.saturating_pow((value & 0x7F).into());
            }
            // Some write it in bits, and some in bytes.
            (FCS_OPTION, Some(value), 1) => {
                interface.fcs_bytes = usize::from(if *value < 8 { *value } else { value / 8 });
            }
            _ => {}
        }
        at += 4 + length.next_multiple_of(4);
    }
    Some(interface)
}

/// Keeps a frame; `units` is its time on the clock of the interface.
fn keep(
    frames: &mut Vec<FileFrame>,
    data: &[u8],
    original_bytes: u32,
    interface: &Interface,
    units: Option<u128>,
) -> Result<(), String> {
    let number = frames.len() + 1;
    if interface.link != ETHERNET {
        return Err(format!("frame {number} is of the link type {} and not Ethernet", interface.link));
    }
    if data.len() < original_bytes as usize {
        return Err(format!("frame {number} was cut from {original_bytes} to {} bytes by its capture", data.len()));
    }
    if number > MOST_FRAMES {
        return Err(format!("it holds more than {MOST_FRAMES} frames"));
    }
    // What was captured beyond the frame's own length is filling.
    let end = (original_bytes as usize).saturating_sub(interface.fcs_bytes);
    if end < HEADER_BYTES {
        return Err(format!("frame {number} has {end} bytes, and the header of Ethernet alone {HEADER_BYTES}"));
    }
    let time_ns = units
        .and_then(|units| u64::try_from(units.checked_mul(1_000_000_000)? / interface.units_per_second.max(1)).ok());
    frames.push(FileFrame { bytes: data[..end].to_vec(), time_ns });
    Ok(())
}

fn broken(frames: &[FileFrame]) -> String {
    format!("it is broken after frame {}", frames.len())
}

#[cfg(test)]
mod tests {
    use super::{Crc, ETHERNET, FileFrame, read};

    const LARGEST_PACKET: u32 = 65535;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The header of a pcap of microseconds.
    fn header(snap_bytes: u32, link: u32) -> Vec<u8> {
        words(&[0xA1B2_C3D4, 0x0004_0002, 0, 0, snap_bytes, link])
    }

    /// A record of a frame that had `original` bytes.
    fn record(frame: &[u8], original: usize) -> Vec<u8> {
        [words(&[1, 5, frame.len() as u32, original as u32]), frame.to_vec()].concat()
    }

    /// A block of pcapng, little-endian.
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let length = words(&[12 + body.len() as u32]);
        [words(&[kind]), length.clone(), body, length].concat()
    }

    fn read_bytes(name: &str, bytes: &[u8]) -> Result<Vec<FileFrame>, String> {
        let path = std::env::temp_dir().join(format!("nicbench-{name}-{}.pcap", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let read = read(path.to_str().unwrap());
        std::fs::remove_file(&path).unwrap();
        read
    }

    /// The lengths of the frames that are read of a pcap with this link type.
    fn lengths(name: &str, link: u32, frames: &[Vec<u8>]) -> Vec<usize> {
        let records = frames.iter().map(|frame| record(frame, frame.len())).collect::<Vec<_>>().concat();
        let read = read_bytes(name, &[header(LARGEST_PACKET, link), records].concat());
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
        assert_eq!(lengths("declared", 0x2400_0001, &[vec![7; 104], vec![7; 68]]), [100, 64]);
        assert_eq!(lengths("undeclared", ETHERNET, &[with_fcs(100), with_fcs(60)]), [100, 60]);
        assert_eq!(lengths("without", ETHERNET, &[with_fcs(100), vec![7; 60]]), [104, 60]);
    }

    #[test]
    fn the_limit_of_a_header_binds_no_record_and_filling_is_no_frame() {
        for (snap_bytes, frame, original) in [(0, 100, 100), (96, 100, 100), (LARGEST_PACKET, 116, 100)] {
            let file = [header(snap_bytes, ETHERNET), record(&vec![7; frame], original)].concat();
            assert_eq!(read_bytes("limit", &file).unwrap()[0].bytes.len(), 100);
        }
        let cut = [header(96, ETHERNET), record(&[7; 96], 200)].concat();
        assert_eq!(read_bytes("cut", &cut).unwrap_err(), "frame 1 was cut from 200 to 96 bytes by its capture");
    }

    #[test]
    fn comments_may_hold_anything_and_interfaces_without_frames_are_of_any_kind() {
        let comment = [&[1, 0, 3, 0], b"\xE9\xE8\xFF\0".as_slice(), &[0; 4]].concat();
        let section = [words(&[0x1A2B_3C4D, 1, u32::MAX, u32::MAX]), comment.clone()].concat();
        let nanoseconds = [9, 0, 1, 0, 9, 0, 0, 0];
        let ethernet = [words(&[ETHERNET, 0]), comment.clone(), nanoseconds.to_vec()].concat();
        let packet = |interface| [words(&[interface, 0, 77, 60, 60]), vec![7; 60], comment.clone()].concat();
        let blocks = |interface| {
            let blocks = [
                block(0x0A0D_0D0A, &section),
                block(1, &words(&[113, 0])), // Linux cooked
                block(1, &ethernet[..8 + comment.len() - 4]),
                block(1, &[words(&[ETHERNET, 0]), nanoseconds.to_vec()].concat()),
                block(6, &packet(interface)),
            ];
            read_bytes("pcapng", &blocks.concat())
        };
        assert_eq!(blocks(2), Ok(vec![FileFrame { bytes: vec![7; 60], time_ns: Some(77) }]));
        assert_eq!(blocks(1), Ok(vec![FileFrame { bytes: vec![7; 60], time_ns: Some(77_000) }]));
        assert_eq!(blocks(0), Err("frame 1 is of the link type 113 and not Ethernet".into()));
        assert_eq!(blocks(3), Err("frame 1 is of an interface that it does not describe".into()));
    }
}
