//! Captures from frames to files, as readers see them.

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::{Value, json};

use super::*;

/// A folder of a test, gone afterwards.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nicbench-captures-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn request(&self, change: Value) -> PortCapture {
        let mut request = json!({"action": "start", "ports": [1], "path_prefix": format!("{}/", self.0.display())});
        change.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        serde_json::from_value(request).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn facts() -> Vec<PortFacts> {
    let facts = |name: &str| PortFacts {
        name: name.into(),
        driver: "simulated".into(),
        mac: None,
        link_bits_per_s: None,
        link_up: None,
        minimum_frame_bytes: 64,
        maximum_frame_bytes: 1518,
        tag_bytes: 0,
        maximum_burst: crate::port::MAXIMUM_BURST,
        transmit_descriptors: 64,
        receive_descriptors: 64,
        send_buffer_bytes: None,
        transmit_budget_frames: None,
        numa_node: None,
        lossless: false,
        stamps: None,
    };
    vec![facts("p0"), facts("p1")]
}

/// What a capture of these frames at port 1 holds, by time, length and bytes, and what is told of it.
fn captured(name: &str, change: Value, frames: &[(u64, Vec<u8>)]) -> (Vec<(u128, u32, Vec<u8>)>, CapturedFile) {
    let folder = Folder::new(name);
    let mut captures = Captures::default();
    captures.start(&folder.request(change), &facts()).unwrap();
    for (unix_ns, frame) in frames {
        captures.push(0, frame, *unix_ns);
        captures.push(1, frame, *unix_ns);
        captures.hand_over(1);
    }
    let told = captures.stop(&[1]).unwrap().wait().remove(0);
    let file = std::fs::File::open(&told.path).unwrap();
    let mut seen = Vec::new();
    if told.path.ends_with(".pcapng") {
        let mut reader = PcapNgReader::new(file).unwrap();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::EnhancedPacket(packet) => {
                    seen.push((packet.timestamp.as_nanos(), packet.original_len, packet.data.into_owned()));
                }
                Block::InterfaceDescription(told) => {
                    assert!(told.options.contains(&InterfaceDescriptionOption::IfFcsLen(4)));
                    assert!(told.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                }
                other => panic!("{other:?}"),
            }
        }
    } else {
        let mut reader = PcapReader::new(file).unwrap();
        while let Some(packet) = reader.next_packet() {
            let packet = packet.unwrap();
            seen.push((packet.timestamp.as_nanos(), packet.orig_len, packet.data.into_owned()));
        }
    }
    assert_eq!((told.frames, told.error.as_deref()), (seen.len() as u64, None));
    if told.dropped == 0 {
        assert_eq!(told.bytes, std::fs::metadata(&told.path).unwrap().len());
    }
    (seen, told)
}

#[test]
fn a_capture_holds_frames_with_times_and_fcs() {
    // The check value of CRC-32 is that of "123456789".
    for format in ["pcap", "pcapng"] {
        let name = format!("fcs-{format}");
        let frame = (1_700_000_000_000_000_007, b"123456789".to_vec());
        let (seen, _) = captured(&name, json!({"format": format}), &[frame]);
        let mut expected = b"123456789".to_vec();
        expected.extend(0xCBF4_3926u32.to_le_bytes());
        assert_eq!(seen, [(1_700_000_000_000_000_007, 13, expected)]);
    }
}

#[test]
fn filters_must_all_hold_and_may_be_masked_or_negated() {
    let frames: Vec<_> = (0..8u8).map(|number| (u64::from(number), vec![number, 0xA0 | number])).collect();
    let filters = json!([{"offset": 0, "bytes": "01", "mask": "01"}, {"offset": 1, "bytes": "a3", "negate": true},
        {"offset": 2, "bytes": "00", "negate": true}]);
    let (seen, told) = captured("filters", json!({"filters": filters}), &frames);
    assert_eq!(seen.iter().map(|(time, ..)| *time).collect::<Vec<_>>(), [1, 5, 7]);
    assert_eq!(told.dropped, 0);
}

#[test]
fn a_full_capture_keeps_the_first_frames_or_the_last() {
    let frames: Vec<_> = (0..10u64).map(|number| (number, vec![0; 60])).collect();
    let times = |overwrite: bool, name: &str| {
        // The header, and three frames of 64 bytes, but not four.
        let room = [("pcap", 24 + 3 * 80), ("pcapng", 84 + 3 * 96)].map(|(format, most)| {
            let asked = json!({"at_most_bytes": most, "overwrite": overwrite, "format": format});
            let (seen, told) = captured(&format!("{name}-{format}"), asked, &frames);
            assert_eq!(told.dropped, 7);
            seen.iter().map(|(time, ..)| *time).collect::<Vec<_>>()
        });
        assert_eq!(room[0], room[1]);
        room[0].clone()
    };
    assert_eq!((times(false, "first"), times(true, "last")), (vec![0, 1, 2], vec![7, 8, 9]));
}

#[test]
fn long_frames_are_cut_where_asked() {
    let (seen, _) = captured("cut", json!({"snap_bytes": 10}), &[(0, vec![7; 1514])]);
    assert_eq!(seen, [(0, 1518, vec![7; 10])]);
}

#[test]
fn a_capture_that_cannot_be_is_refused() {
    let folder = Folder::new("refused");
    let mut captures = Captures::default();
    let mut refused = |change: Value| captures.start(&folder.request(change), &facts()).unwrap_err().kind;
    assert_eq!(refused(json!({"ports": [2]})), ErrorKind::BadRequest);
    assert_eq!(refused(json!({"ports": [1, 1]})), ErrorKind::BadRequest);
    assert_eq!(refused(json!({"path_prefix": "/nowhere/at/all/"})), ErrorKind::Io);
    assert_eq!(refused(json!({"filters": [{"offset": 0, "bytes": "0"}]})), ErrorKind::BadRequest);
    assert_eq!(refused(json!({"filters": [{"offset": 0, "bytes": "00", "mask": "0000"}]})), ErrorKind::BadRequest);
    assert_eq!(captures.stop(&[1]).unwrap_err().kind, ErrorKind::BadState);
    captures.start(&folder.request(json!({})), &facts()).unwrap();
    assert_eq!(captures.start(&folder.request(json!({})), &facts()).unwrap_err().kind, ErrorKind::BadState);
    assert_eq!(captures.finish().wait().len(), 1);
}
