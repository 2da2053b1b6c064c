//! Frames against those that scapy built from the same words (`golden/build_frames.py`), byte for byte.

use nicbench_packets::frame_writer::FrameWriter;
use nicbench_packets::signature::{Signature, Signer};
use nicbench_packets::template::Template;
use nicbench_packets::traffic::Captured;
use nicbench_protocol::StreamRequest;
use serde_json::Value;

const RUN_KEY: u64 = 0x0123_4567_89AB_CDEF;
const TRIAL: u32 = 7;
const FIRST_FLOW: u32 = 100;
const TIME_NS: u64 = 123_456_789;

fn golden(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn frames() -> Vec<(StreamRequest, u32, u64, String)> {
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(golden("frames.json")).unwrap()).unwrap();
    let row = |row: Value| {
        let stream = serde_json::from_value(row["stream"].clone()).unwrap();
        let number = |name: &str| row[name].as_u64().unwrap();
        (stream, number("flow") as u32, number("sequence"), row["frame"].as_str().unwrap().to_owned())
    };
    rows.into_iter().map(row).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As the transmit loop writes it: by flow images where it can, and by shape.
fn written(template: &Template, request: &StreamRequest, flow: u32, sequence: u64) -> Vec<u8> {
    let signer = Signer::new(RUN_KEY, TRIAL);
    let mut bytes = template.constant().to_vec();
    let choice = template.choose(flow, sequence, request.flows);
    let signature = Signature { flow: FIRST_FLOW + choice.flow, sequence: choice.sequence, time_ns: TIME_NS };
    if template.is_varied() {
        let shape = template.shape(choice).unwrap();
        bytes.truncate(shape.length);
        template.write_varied(choice, &mut bytes);
        signer.write(bytes[shape.signature..].first_chunk_mut().unwrap(), signature);
        shape.write_checksums(&mut bytes);
    } else {
        let writer = FrameWriter::new(template.clone(), signer, FIRST_FLOW, request.flows, 1);
        writer.patch(&mut bytes, flow, signature);
    }
    bytes
}

#[test]
fn frames_are_those_that_scapy_builds() {
    let frames = frames();
    assert!(frames.len() >= 7);
    for (request, flow, sequence, expected) in frames {
        let template = Template::new(&request).unwrap();
        assert_eq!(hex(&written(&template, &request, flow, sequence)), expected, "{}", request.name);
    }
}

#[test]
fn a_frame_of_a_mix_is_the_frame_of_its_size() {
    for (mut request, flow, sequence, expected) in frames() {
        // The golden size is one of three: where its turn comes, the frame must be the golden one but for its sequence.
        let size = request.frame_bytes;
        request.sizes = serde_json::from_value(serde_json::json!([{"frame_bytes": size, "weight": 2},
            {"frame_bytes": size + 1, "weight": 1}, {"frame_bytes": size + 400, "weight": 1}]))
        .unwrap();
        let template = Template::new(&request).unwrap();
        let turn = (sequence..).find(|sequence| {
            let choice = template.choose(flow, *sequence, request.flows);
            template.shape(choice).unwrap().length == size as usize - 4
        });
        let mut single = request.clone();
        single.sizes.clear();
        let alone = written(&Template::new(&single).unwrap(), &single, flow, turn.unwrap());
        assert_eq!(hex(&written(&template, &request, flow, turn.unwrap())), hex(&alone), "{}", request.name);
        assert_eq!(alone.len() * 2, expected.len());
    }
}

fn capture(file: &str) -> StreamRequest {
    serde_json::from_value(serde_json::json!({"name": "replay", "transmit_port": 0, "receive_port": 1,
        "rate_frames_per_s": 1, "pcap": golden(file)}))
    .unwrap()
}

#[test]
fn both_formats_of_capture_hold_the_same_frames_in_three_flows() {
    let (classic, next) = (Captured::read(&capture("flows.pcap")), Captured::read(&capture("flows.pcapng")));
    let (classic, next) = (classic.unwrap(), next.unwrap());
    assert_eq!((classic.flows(), next.flows()), (3, 3));
    assert_eq!(classic.sizes(), (64, 178));
    (0..4).for_each(|index| assert_eq!(classic.frame(index), next.frame(index)));
}

#[test]
fn a_frame_says_by_flow_and_sequence_which_of_the_file_it_is_for_ever() {
    let request = capture("flows.pcap");
    let template = Template::new(&request).unwrap();
    for position in [0, 1, 2, 3, 4, 400_003, (1 << 33) + 2, (1 << 40) + 1, u64::MAX / 3] {
        let choice = template.choose(0, position, 1);
        assert_eq!(choice.shape as u64, position % 4, "the file's order");
        let bytes = written(&template, &request, 0, position);
        assert!(template.is_intact(&bytes, choice.flow, choice.sequence), "{position}");
        let signature = template.shape(choice).unwrap().signature;
        let before = &mut bytes.clone();
        before[signature - 1] ^= 1;
        let is_header = signature == 42; // The last frame has no payload beside the signature.
        assert_eq!(template.is_intact(before, choice.flow, choice.sequence), is_header, "{position}");
    }
}

#[test]
fn checksums_that_the_capture_had_wrong_are_made_right_and_padding_stays_padding() {
    let request = capture("flows.pcap");
    let template = Template::new(&request).unwrap();
    for position in 0..4 {
        let frame = written(&template, &request, 0, position);
        let ip = if frame[12] == 0x81 { 18 } else { 14 };
        let end = ip + usize::from(u16::from_be_bytes([frame[ip + 2], frame[ip + 3]]));
        let sum = |start, bytes: &[u8]| nicbench_packets::checksum::add(start, bytes);
        let finish = nicbench_packets::checksum::finish;
        assert_eq!(finish(sum(0, &frame[ip..ip + 20])), 0, "frame {position}");
        let transport = u64::from(frame[ip + 9]) + (end - ip - 20) as u64;
        let is_without = frame[ip + 9] == 17 && frame[ip + 26..ip + 28] == [0, 0];
        let checksum = finish(sum(sum(transport, &frame[ip + 12..ip + 20]), &frame[ip + 20..end]));
        assert_eq!((checksum == 0, is_without), (position != 3, position == 3), "frame {position}");
    }
    assert_eq!(written(&template, &request, 0, 3)[58..], [0, 0]);
}

#[test]
fn lengths_that_the_capture_had_wrong_are_made_right() {
    let path = std::env::temp_dir().join(format!("nicbench-lengths-{}.pcap", std::process::id()));
    let mut file = std::fs::read(golden("flows.pcap")).unwrap();
    let (records, ip, udp) = (24 + 16, 14, 34);
    // Longer than the frame, as a card's offload leaves it, and 0.
    file[records + ip + 2..records + ip + 4].copy_from_slice(&[0xFF, 0xF2]);
    file[records + udp + 4..records + udp + 6].fill(0);
    std::fs::write(&path, file).unwrap();
    let mut request = capture("");
    request.pcap = Some(path.to_str().unwrap().into());
    let template = Template::new(&request).unwrap();
    let (bytes, choice) = (written(&template, &request, 0, 0), template.choose(0, 0, 1));
    assert_eq!((&bytes[ip + 2..ip + 4], &bytes[udp + 4..udp + 6]), (&[0u8, 68][..], &[0u8, 48][..]));
    assert!(template.is_intact(&bytes, choice.flow, choice.sequence));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_file_that_cannot_be_sent_is_refused_with_the_frame_and_the_reason() {
    let folder = std::env::temp_dir().join(format!("nicbench-captures-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (empty, text) = (folder.join("empty.pcap"), folder.join("text.pcap"));
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&text, "this is no capture at all, though it is long enough").unwrap();
    let whole = std::fs::read(golden("flows.pcap")).unwrap();
    let cut = folder.join("cut.pcap");
    std::fs::write(&cut, &whole[..whole.len() - 5]).unwrap();
    for (path, offset, words) in [
        (golden("small.pcap"), None, ["frame 2 of 54 bytes", "has 0 bytes", "16"]),
        (golden("flows.pcap"), Some(60), ["frame 4 of 60 bytes", "at byte 60", "16"]),
        (golden("flows.pcap"), Some(40), ["frame 1 of 82 bytes", "at byte 40", "from byte 42"]),
        (golden("nowhere.pcap"), None, ["nowhere.pcap", "No such file", "replay"]),
        (golden(""), None, ["not a file", "replay", "replay"]),
        (empty.to_str().unwrap().into(), None, ["too short", "empty.pcap", "replay"]),
        (text.to_str().unwrap().into(), None, ["neither pcap nor pcapng", "text.pcap", "replay"]),
        (cut.to_str().unwrap().into(), None, ["broken after frame 3", "cut.pcap", "replay"]),
    ] {
        let mut request = capture("");
        (request.pcap, request.signature_offset) = (Some(path), offset);
        let error = Captured::read(&request).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
