//! Reads the Ethernet frames of a capture: classic pcap or pcapng, told apart by their first bytes.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::Block;

/// The largest file that is read.
const LARGEST_FILE_BYTES: u64 = 256 << 20;
const MOST_FRAMES: usize = 1 << 20;
/// The first bytes of a pcapng file: the type of its section header.
const PCAPNG: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

/// The frames of the file at `path`, in its order; otherwise what is wrong with it.
pub fn read(path: &str) -> Result<Vec<Vec<u8>>, String> {
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

fn read_pcap(reader: impl Read) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = PcapReader::new(reader).map_err(|_| "it is neither pcap nor pcapng".to_owned())?;
    check_link(reader.header().datalink)?;
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.map_err(|error| broken(&frames, &error))?;
        keep(&mut frames, &packet.data, packet.orig_len)?;
    }
    Ok(frames)
}

fn read_pcapng(reader: impl Read) -> Result<Vec<Vec<u8>>, String> {
    let mut reader = PcapNgReader::new(reader).map_err(|error| format!("it is no pcapng: {error}"))?;
    let mut frames = Vec::new();
    while let Some(block) = reader.next_block() {
        match block.map_err(|error| broken(&frames, &error))? {
            Block::InterfaceDescription(interface) => check_link(interface.linktype)?,
            Block::EnhancedPacket(packet) => keep(&mut frames, &packet.data, packet.original_len)?,
            Block::SimplePacket(packet) => keep(&mut frames, &packet.data, packet.original_len)?,
            Block::Packet(packet) => keep(&mut frames, &packet.data, packet.original_len)?,
            _ => {}
        }
    }
    Ok(frames)
}

fn check_link(link: DataLink) -> Result<(), String> {
    match link {
        DataLink::ETHERNET => Ok(()),
        other => Err(format!("it holds {other:?} and not Ethernet")),
    }
}

fn keep(frames: &mut Vec<Vec<u8>>, data: &[u8], original_bytes: u32) -> Result<(), String> {
    let number = frames.len() + 1;
    if data.len() < original_bytes as usize {
        return Err(format!("frame {number} was cut from {original_bytes} to {} bytes by its capture", data.len()));
    }
    if number > MOST_FRAMES {
        return Err(format!("it holds more than {MOST_FRAMES} frames"));
    }
    frames.push(data.to_vec());
    Ok(())
}

fn broken(frames: &[Vec<u8>], error: &pcap_file::PcapError) -> String {
    format!("it is broken after frame {}: {error}", frames.len())
}
