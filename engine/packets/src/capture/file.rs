//! Writes a capture as pcapng with nanoseconds (draft-ietf-opsawg-pcapng).

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Error, Write};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};

use super::Captured;
use crate::error::io_error_of_pcap;

/// A port as the file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    pub name: String,
    /// What made the time stamps.
    pub description: String,
}

/// Time stamps are powers of ten: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writes the file; `began` is when the trial did, as time of day.
pub fn write(path: &str, interfaces: &[Interface], frames: &[Captured], began: Duration) -> Result<(), Error> {
    let mut writer = PcapNgWriter::new(BufWriter::new(File::create(path)?)).map_err(io_error_of_pcap)?;
    for interface in interfaces {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0, // No limit.
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(&interface.name)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(&interface.description)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        writer.write_pcapng_block(block).map_err(io_error_of_pcap)?;
    }
    for frame in frames {
        let comment = frame.comment.iter().map(|text| EnhancedPacketOption::Comment(Cow::Borrowed(text.as_str())));
        let block = EnhancedPacketBlock {
            interface_id: frame.port as u32,
            timestamp: began + Duration::from_nanos(frame.time_ns),
            original_len: frame.bytes.len() as u32,
            data: Cow::Borrowed(&frame.bytes),
            options: comment.collect(),
        };
        writer.write_pcapng_block(block).map_err(io_error_of_pcap)?;
    }
    writer.into_inner().flush()
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn what_is_written_is_read_back_with_its_nanoseconds() {
        let path = std::env::temp_dir().join(format!("nicbench-capture-{}.pcapng", std::process::id()));
        let interface = |name: &str| Interface { name: name.into(), description: "TSC".into() };
        let frame = |time_ns, port, comment: Option<&str>| Captured {
            time_ns,
            port,
            bytes: (0..61).collect(),
            comment: comment.map(str::to_owned),
        };
        let frames = [frame(1, 0, None), frame(1_000_000_007, 1, Some("here"))];
        write(path.to_str().unwrap(), &[interface("t0"), interface("t1")], &frames, Duration::from_secs(1_700_000_000))
            .unwrap();
        let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        let mut seen = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    assert_eq!((packet.data.len(), packet.data[60]), (61, 60));
                    seen.push((packet.timestamp.as_nanos(), packet.interface_id, packet.options.len()));
                }
                Block::InterfaceDescription(block) => {
                    assert!(block.options.contains(&InterfaceDescriptionOption::IfTsResol(NANOSECONDS)));
                }
                other => panic!("{other:?}"),
            }
        }
        let began_ns = 1_700_000_000_000_000_000;
        assert_eq!(seen, [(began_ns + 1, 0, 0), (began_ns + 1_000_000_007, 1, 1)]);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_made_is_an_error() {
        assert!(write("/nowhere/at/all.pcapng", &[], &[], Duration::ZERO).is_err());
    }
}
