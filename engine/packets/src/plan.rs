//! What a `start` asks for, checked against the ports before anything is sent.

use std::sync::Arc;

use nicbench_protocol::{Start, StreamRequest};

use crate::analyser::Expected;
use crate::error::{EngineError, ErrorKind};
use crate::port::{MAXIMUM_BURST, PortFacts};
use crate::signature::{MAXIMUM_FLOWS, scramble};
use crate::template::{Bounds, Template};
use crate::traffic::Captured;
use crate::wire::ethernet::FCS_BYTES;

const MAXIMUM_STREAMS: usize = 64;
const MAXIMUM_DURATION_S: f64 = 86_400.0;
const MAXIMUM_CATCH_UP_S: f64 = 10.0;
const MAXIMUM_RATE_FRAMES_PER_S: f64 = 1e9;
const MAXIMUM_PORT_COUNT: u32 = 1 << 16;
const LEAST_SPEED: f64 = 1e-6;
const MOST_SPEED: f64 = 1e6;
const MAXIMUM_BURST_FRAMES: u32 = 1 << 20;
/// IEEE 802.3 4.4.2: minFrameSize, with FCS.
const SMALLEST_ETHERNET_BYTES: u32 = 64;

/// Refuses a transmission that cannot be made; otherwise what the receiver must know of each stream.
pub fn check(start: &Start, ports: &[PortFacts]) -> Result<Vec<Expected>, EngineError> {
    within("trial", start.trial.into(), 1.0, (1u32 << 31).into())?;
    duration("duration_s", start.duration_s, MAXIMUM_DURATION_S)?;
    within("duration_s", start.duration_s, 1e-6, MAXIMUM_DURATION_S)?;
    duration("catch_up_s", start.catch_up_s, MAXIMUM_CATCH_UP_S)?;
    let most = ports.iter().map(|port| port.maximum_burst).min().unwrap_or(MAXIMUM_BURST);
    within("burst", start.burst.into(), 1.0, most as f64)?;
    within("the number of streams", start.streams.len() as f64, 1.0, MAXIMUM_STREAMS as f64)?;
    if let Some(fault) = start.fault {
        duration("pause_receive_after_s", fault.pause_receive_after_s, MAXIMUM_DURATION_S)?;
        duration("pause_receive_s", fault.pause_receive_s, MAXIMUM_DURATION_S)?;
    }
    let mut first_flow: u64 = 0;
    let mut expected = Vec::new();
    for (number, stream) in start.streams.iter().enumerate() {
        check_copy(stream, &start.streams[..number])?;
        check_frames(stream, start.duration_s)?;
        let (transmit, receive) = check_stream(stream, ports)?;
        let (template, sent) = match Template::received(stream)? {
            Some(received) => (received, Some(Template::new(stream)?)),
            None => (Template::new(stream)?, None),
        };
        if let Template::Captured(captured) = &template {
            let (smallest, largest) = captured.sizes();
            check_frame_size(
                stream,
                Bounds { least: 0, smallest, largest, grows: 0, tagged: [false; 2] },
                transmit,
                receive,
            )?;
        }
        let flows = template.flows(stream);
        within("the sum of flows over all streams", (first_flow + u64::from(flows)) as f64, 1.0, MAXIMUM_FLOWS as f64)?;
        expected.push(Expected {
            template,
            sent,
            receive_port: stream.receive_port,
            first_flow: first_flow as u32,
            flows,
            copy_of: stream.copy_of,
        });
        first_flow += u64::from(flows);
    }
    begin_together(start, &mut expected);
    Ok(expected)
}

/// The times of captures that are sent together count from the first frame of all of them.
fn begin_together(start: &Start, expected: &mut [Expected]) {
    let is_one = |stream: &StreamRequest| stream.timing.is_some_and(|timing| timing.together);
    let first_ns = |stream: &Expected| stream.template.captured().and_then(Captured::first_ns);
    let of_trial = || start.streams.iter().zip(expected.iter()).filter(|(request, _)| is_one(request));
    let Some(origin_ns) = of_trial().filter_map(|(_, stream)| first_ns(stream)).min() else { return };
    for (request, stream) in start.streams.iter().zip(expected) {
        if let (true, Template::Captured(captured)) = (is_one(request), &mut stream.template) {
            Arc::make_mut(captured).begin_at(origin_ns);
        }
    }
}

/// Checks a duration of a request.
pub fn duration(name: &str, seconds: f64, most_s: f64) -> Result<(), EngineError> {
    within(name, seconds, 0.0, most_s)
}

fn within(name: &str, value: f64, least: f64, most: f64) -> Result<(), EngineError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let next = format!("give a value from {least} to {most}");
    Err(EngineError::new(ErrorKind::BadRequest, format!("{name} is {value}"), next))
}

/// Checks a stream and returns its ports; the frames of a file are checked once they are read.
fn check_stream<'a>(
    stream: &StreamRequest,
    ports: &'a [PortFacts],
) -> Result<(&'a PortFacts, &'a PortFacts), EngineError> {
    let name = &stream.name;
    let port = |field: &str, index: usize| {
        ports.get(index).ok_or_else(|| {
            let message = format!("stream {name}: {field} is {index}, and there are {} ports", ports.len());
            EngineError::new(ErrorKind::BadRequest, message, "use a number of a configured port, from 0")
        })
    };
    let transmit = port("transmit_port", stream.transmit_port)?;
    let receive = port("receive_port", stream.receive_port)?;
    let named = |field: &str| format!("stream {name}: {field}");
    if let Some(timing) = stream.timing {
        within(&named("speed of timing"), timing.speed, LEAST_SPEED, MOST_SPEED)?;
        if stream.pcap.is_none() {
            let next = "add `pcap`, or leave `timing` out";
            return Err(EngineError::new(ErrorKind::BadRequest, named("timing is given without a capture"), next));
        }
    }
    within(&named("rate_frames_per_s"), stream.rate_frames_per_s, 0.0, MAXIMUM_RATE_FRAMES_PER_S)?;
    within(&named("flows"), stream.flows.into(), 1.0, MAXIMUM_FLOWS as f64)?;
    for (field, count, most) in [
        ("source_address_count", stream.source_address_count, u32::MAX),
        ("destination_address_count", stream.destination_address_count, u32::MAX),
        ("source_port_count", stream.source_port_count, MAXIMUM_PORT_COUNT),
        ("destination_port_count", stream.destination_port_count, MAXIMUM_PORT_COUNT),
    ] {
        within(&named(field), count.into(), 1.0, most.into())?;
    }
    if let Some(bounds) = Bounds::of(stream)? {
        check_frame_size(stream, bounds, transmit, receive)?;
    }
    Ok((transmit, receive))
}

/// A copy has the frames of an earlier stream, which is none itself, and another port.
fn check_copy(stream: &StreamRequest, earlier: &[StreamRequest]) -> Result<(), EngineError> {
    let Some(number) = stream.copy_of else { return Ok(()) };
    let original = earlier.get(number).filter(|original| original.copy_of.is_none());
    let is_whole = original.is_some_and(|original| {
        let copy = StreamRequest { name: stream.name.clone(), receive_port: stream.receive_port, ..original.clone() };
        StreamRequest { copy_of: Some(number), ..copy } == *stream && original.receive_port != stream.receive_port
    });
    if is_whole {
        return Ok(());
    }
    let message = format!("stream {}: copy_of is {number}, and there is no such stream before it", stream.name);
    let next = "name an earlier stream that is no copy, and repeat all of its fields but `name` and `receive_port`";
    Err(EngineError::new(ErrorKind::BadRequest, message, next))
}

/// A late beginning, bursts and a fixed number of frames must go together with rate and duration.
fn check_frames(stream: &StreamRequest, duration_s: f64) -> Result<(), EngineError> {
    let named = |field: &str| format!("stream {}: {field}", stream.name);
    let (rate, refuse) = (stream.rate_frames_per_s, |message: String, next: &str| {
        Err(EngineError::new(ErrorKind::BadRequest, message, next))
    });
    if let Some(burst_frames) = stream.burst_frames {
        within(&named("burst_frames"), burst_frames.into(), 1.0, MAXIMUM_BURST_FRAMES.into())?;
        if rate == 0.0 {
            let next = "give a mean rate above 0, or leave `burst_frames` out";
            return refuse(named("burst_frames is given without a rate"), next);
        }
    }
    within(&named("begins_s"), stream.begins_s, 0.0, duration_s)?;
    if stream.begins_s > 0.0 && rate == 0.0 {
        return refuse(named("begins_s is given without a rate"), "give a rate above 0, or leave `begins_s` out");
    }
    let duration_s = duration_s - stream.begins_s;
    let Some(frames) = stream.frames else { return Ok(()) };
    if frames == 0 {
        return refuse(named("frames is 0"), "give 1 or more, or leave `frames` out");
    }
    if rate > 0.0 && frames as f64 > rate * duration_s {
        let needed_s = frames as f64 / rate;
        let message =
            named(&format!("{frames} frames at {rate} frames per second take {needed_s} s, not {duration_s} s"));
        return refuse(message, "give a longer duration, a higher rate, or fewer frames");
    }
    Ok(())
}

fn check_frame_size(
    stream: &StreamRequest,
    bounds: Bounds,
    transmit: &PortFacts,
    receive: &PortFacts,
) -> Result<(), EngineError> {
    let least = bounds.least.max(transmit.minimum_frame_bytes).max(FCS_BYTES + 1);
    let [sent, back] = bounds.tagged;
    let most = transmit.longest(sent).min(receive.longest(back).saturating_add_signed(-bounds.grows));
    // Ethernet fills up a frame that is too small when it leaves a tunnel (IEEE 802.3 3.2.8).
    let least =
        least.max(if bounds.grows == 0 { 0 } else { SMALLEST_ETHERNET_BYTES.saturating_add_signed(-bounds.grows) });
    let sizes = least..=most;
    let wrong = [bounds.smallest, bounds.largest].into_iter().find(|size| !sizes.contains(size));
    let Some(wrong) = wrong else { return Ok(()) };
    let back = match bounds.grows {
        0 => String::new(),
        grows => format!(", and they come back with {} bytes {}", grows.abs(), if grows < 0 { "less" } else { "more" }),
    };
    let message = format!(
        "stream {}: frame_bytes is {wrong}; the smallest frame is {least} bytes (headers and signature need \
         {}, port {} {}) and the largest {most} (ports {} and {}), all with the FCS of {FCS_BYTES} bytes{back}",
        stream.name, bounds.least, transmit.name, transmit.minimum_frame_bytes, transmit.name, receive.name,
    );
    let next = format!("choose frame sizes from {least} to {most}");
    Err(EngineError::new(ErrorKind::FrameSize, message, next))
}

/// A number that is equal for equal loads: it seeds simulated ports, with their seed and the trial's number.
pub fn load_number(start: &Start) -> u64 {
    let parts = start.streams.iter().flat_map(|stream| {
        [stream.rate_frames_per_s.to_bits(), u64::from(stream.frame_bytes), u64::from(stream.flows)]
    });
    parts.chain([start.duration_s.to_bits()]).fold(0, |number, part| scramble(number ^ part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports() -> Vec<PortFacts> {
        let facts = |name: &str| PortFacts {
            name: name.into(),
            driver: "simulated".into(),
            mac: None,
            link_bits_per_s: None,
            link_up: None,
            minimum_frame_bytes: 64,
            maximum_frame_bytes: 1518,
            tag_bytes: 0,
            maximum_burst: MAXIMUM_BURST,
            transmit_descriptors: 64,
            receive_descriptors: 64,
            send_buffer_bytes: None,
            transmit_budget_frames: None,
            numa_node: None,
            lossless: false,
            stamps: None,
        };
        vec![facts("t0"), facts("t1")]
    }

    fn start(change: impl Fn(&mut serde_json::Value)) -> Start {
        let mut value = serde_json::json!({
            "trial": 1, "duration_s": 1.0, "streams": [{
                "name": "up", "transmit_port": 0, "receive_port": 1, "frame_bytes": 64, "rate_frames_per_s": 1000,
                "source_mac": "02:00:00:00:00:01", "destination_mac": "02:00:00:00:00:02", "ip": 4,
                "source_address": "198.18.0.2", "destination_address": "198.19.0.2"}],
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_ordinary_start_is_accepted() {
        assert_eq!(check(&start(|_| {}), &ports()).unwrap().len(), 1);
    }

    #[test]
    fn a_frame_size_out_of_range_names_the_smallest_and_the_largest() {
        for (ip, size, least) in [(4, 63, "64"), (4, 1519, "64"), (6, 81, "82"), (4, 0, "64")] {
            let start = start(|value| {
                let stream = &mut value["streams"][0];
                (stream["frame_bytes"], stream["ip"]) = (size.into(), ip.into());
            });
            let error = check(&start, &ports()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::FrameSize);
            assert!(error.message.contains(least) && error.message.contains("1518"), "{error}");
        }
    }

    #[test]
    fn absurd_numbers_are_bad_requests_that_name_the_field() {
        use serde_json::json;
        let of_start = [
            ("trial", json!(0)),
            ("duration_s", json!(1e300)),
            ("duration_s", json!(-1)),
            ("burst", json!(65)),
            ("catch_up_s", json!(11)),
        ];
        for (field, number) in of_start {
            let error = check(&start(|value| value[field] = number.clone()), &ports()).unwrap_err();
            assert!(error.kind == ErrorKind::BadRequest && error.message.contains(field), "{error}");
        }
        let of_stream = [
            ("rate_frames_per_s", json!(1e12)),
            ("flows", json!(1 << 25)),
            ("flows", json!(0)),
            ("transmit_port", json!(2)),
            ("source_port_count", json!(0)),
        ];
        for (field, number) in of_stream {
            let error = check(&start(|value| value["streams"][0][field] = number.clone()), &ports()).unwrap_err();
            assert!(error.kind == ErrorKind::BadRequest && error.message.contains(field), "{error}");
        }
    }

    #[test]
    fn a_late_beginning_leaves_less_time_for_the_frames() {
        use serde_json::json;
        let refused = |fields: &[(&str, serde_json::Value)]| {
            let start = start(|value| fields.iter().for_each(|(field, to)| value["streams"][0][field] = to.clone()));
            check(&start, &ports()).err().map(|error| error.message)
        };
        assert_eq!(refused(&[("begins_s", json!(0.5)), ("frames", json!(500))]), None);
        assert!(refused(&[("begins_s", json!(0.5)), ("frames", json!(501))]).unwrap().contains("not 0.5 s"));
        assert!(refused(&[("begins_s", json!(2))]).unwrap().contains("begins_s is 2"));
        assert!(
            refused(&[("begins_s", json!(0.5)), ("rate_frames_per_s", json!(0))]).unwrap().contains("without a rate")
        );
    }

    #[test]
    fn a_copy_repeats_an_earlier_stream_at_another_port() {
        use serde_json::json;
        let with_copy = |field: &str, to: serde_json::Value| {
            let start = start(|value| {
                let mut copy = value["streams"][0].clone();
                (copy["name"], copy["receive_port"], copy["copy_of"]) = (json!("copy"), json!(0), json!(0));
                copy[field] = to.clone();
                value["streams"].as_array_mut().unwrap().push(copy);
            });
            check(&start, &ports()).map(|expected| expected[1].copy_of)
        };
        assert_eq!(with_copy("name", json!("copy")).unwrap(), Some(0));
        for (field, to) in [("copy_of", json!(1)), ("receive_port", json!(1)), ("frame_bytes", json!(128))] {
            assert!(with_copy(field, to).unwrap_err().message.contains("copy_of"), "{field}");
        }
    }

    #[test]
    fn a_start_without_streams_is_refused() {
        assert!(check(&start(|value| value["streams"] = serde_json::json!([])), &ports()).is_err());
    }

    #[test]
    fn equal_loads_have_equal_numbers() {
        let other = start(|value| value["streams"][0]["rate_frames_per_s"] = 1001.into());
        assert_eq!(load_number(&start(|_| {})), load_number(&start(|value| value["trial"] = 9.into())));
        assert_ne!(load_number(&start(|_| {})), load_number(&other));
    }
}
