//! Whose a frame without a signature is, by its header fields.
//!
//! Flows that look at the same fields share a table: the fields that do not vary are its key. So a frame costs one look-up
//! for each set of fields, however many flows there are.

use std::collections::HashMap;

use nicbench_protocol::FlowRequest;

use super::flow::Flow;
use super::values::{BitPlace, Field, Members};
use crate::error::{EngineError, ErrorKind};
use crate::signature::scramble;

/// Frames that are looked at of all flows together, and at least of each, before they are taken to be told apart.
const FRAMES_LOOKED_AT: u64 = 1 << 18;
const FEWEST_LOOKED_AT: u64 = 64;

/// Flows by what their frames look like.
#[derive(Debug, Default)]
pub struct Classifier {
    shapes: Vec<Shape>,
}

/// Flows that look at the same fields.
#[derive(Debug)]
struct Shape {
    /// Fields that have one value in each flow.
    constant: Vec<BitPlace>,
    varying: Vec<BitPlace>,
    flows: HashMap<Vec<u128>, Vec<Candidate>>,
    /// Of the last frame; kept, so that a frame needs no memory.
    key: Vec<u128>,
}

#[derive(Debug)]
struct Candidate {
    flow: u32,
    ports: Vec<usize>,
    /// Of the varying fields, in their order.
    members: Vec<Members>,
    bytes: Option<Vec<u32>>,
}

impl Classifier {
    /// # Errors
    /// Where a field is none.
    pub fn of(flows: &[FlowRequest]) -> Result<Self, EngineError> {
        let mut classifier = Self::default();
        for (number, request) in flows.iter().enumerate().filter(|(_, request)| !request.signature) {
            let Some(matches) = &request.matches else { continue };
            let mut fields = Vec::with_capacity(matches.fields.len());
            for field in &matches.fields {
                fields.push(Field::of(field).map_err(|(what, next)| {
                    EngineError::new(ErrorKind::BadRequest, format!("flow {}: match: {what}", request.name), next)
                })?);
            }
            fields.sort_by_key(|field| field.place);
            let (constant, varying): (Vec<&Field>, Vec<&Field>) =
                fields.iter().partition(|field| field.constant().is_some());
            let candidate = Candidate {
                flow: number as u32,
                ports: request.receive_ports.clone(),
                members: varying.iter().map(|field| field.members()).collect(),
                bytes: matches.bytes.clone(),
            };
            let key = constant.iter().filter_map(|field| field.constant()).collect();
            let places = |fields: &[&Field]| fields.iter().map(|field| field.place).collect::<Vec<_>>();
            let candidates = classifier.shape(places(&constant), places(&varying)).flows.entry(key).or_default();
            candidates.push(candidate);
        }
        // The more a flow looks at, the more it is meant.
        let bits = |places: &[BitPlace]| places.iter().map(|place| place.bits).sum::<u32>();
        classifier.shapes.sort_by_key(|shape| std::cmp::Reverse(bits(&shape.constant) + bits(&shape.varying)));
        Ok(classifier)
    }

    /// Looks at frames of each flow without signatures as if they arrived, at the ports where they should.
    ///
    /// The first frames are looked at, and others at random up to the flow's end: values that overlap in long ranges
    /// are found by the first frames of one of them.
    ///
    /// # Errors
    /// Where a frame would be counted as another flow's; this names both.
    pub fn check_apart(&mut self, requests: &[FlowRequest], flows: &[Flow]) -> Result<(), EngineError> {
        if self.shapes.is_empty() {
            return Ok(());
        }
        let count = (FRAMES_LOOKED_AT / flows.len().max(1) as u64).max(FEWEST_LOOKED_AT);
        let mut frame = Vec::new();
        for (own, (request, flow)) in requests.iter().zip(flows).enumerate().filter(|(_, (each, _))| !each.signature) {
            let own = request.matches.is_some().then_some(own as u32);
            let sent = flow.intended().unwrap_or(u64::MAX);
            let looked_at = count.min(sent);
            for place in 0..looked_at {
                let number = if place < looked_at.div_ceil(2) { place } else { scramble(place) % sent };
                frame.resize(flow.program.length(number), 0);
                flow.program.write(number, &mut frame);
                flow.program.finish(&mut frame, [0; 2]);
                for port in &request.receive_ports {
                    let found = self.find(*port, &frame);
                    if let Some(other) = found.filter(|found| own != Some(*found)) {
                        return Err(alike(request, &requests[other as usize]));
                    }
                }
            }
        }
        Ok(())
    }

    fn shape(&mut self, constant: Vec<BitPlace>, varying: Vec<BitPlace>) -> &mut Shape {
        let found = self.shapes.iter().position(|shape| shape.constant == constant && shape.varying == varying);
        let place = found.unwrap_or_else(|| {
            self.shapes.push(Shape { constant, varying, flows: HashMap::new(), key: Vec::new() });
            self.shapes.len() - 1
        });
        &mut self.shapes[place]
    }

    /// The flow of a frame that arrived at `port`; one that is received there comes before others.
    #[inline]
    pub fn find(&mut self, port: usize, frame: &[u8]) -> Option<u32> {
        self.shapes.iter_mut().find_map(|shape| shape.find(port, frame))
    }
}

fn alike(one: &FlowRequest, other: &FlowRequest) -> EngineError {
    let message = format!(
        "frames of flow {} would be counted as those of flow {}, whose frames are known by their headers",
        one.name, other.name
    );
    let next = "give them other addresses or ports, or room for a signature";
    EngineError::new(ErrorKind::BadRequest, message, next)
}

impl Shape {
    fn find(&mut self, port: usize, frame: &[u8]) -> Option<u32> {
        self.key.clear();
        for place in &self.constant {
            self.key.push(place.get(frame)?);
        }
        let candidates = self.flows.get(self.key.as_slice())?;
        let is_found = |candidate: &&Candidate| {
            let has_values = self.varying.iter().zip(&candidate.members);
            let mut has_values = has_values.map(|(place, members)| (place.get(frame), members));
            has_values.all(|(value, members)| value.is_some_and(|value| members.contains(value)))
                && candidate.bytes.as_ref().is_none_or(|bytes| bytes.contains(&(frame.len() as u32 + 4)))
        };
        let received_here = |candidate: &&Candidate| candidate.ports.contains(&port);
        let found = candidates.iter().filter(received_here).find(is_found);
        found.or_else(|| candidates.iter().find(is_found)).map(|candidate| candidate.flow)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn flow(receive_port: usize, fields: Value, bytes: Value) -> FlowRequest {
        serde_json::from_value(json!({"name": format!("to {receive_port}"), "transmit_port": 0,
            "receive_ports": [receive_port], "template": "", "sizes": {"fixed": 64}, "rate_frames_per_s": 1,
            "signature": false, "match": {"fields": fields, "bytes": bytes}}))
        .unwrap()
    }

    fn byte(offset: u32, values: Value) -> Value {
        json!({"bit_offset": offset * 8, "bits": 8, "values": values})
    }

    #[test]
    fn a_frame_is_of_the_flow_whose_fields_it_has() {
        let flows = [
            flow(1, json!([byte(0, json!({"first": 1}))]), Value::Null),
            flow(1, json!([byte(0, json!({"first": 2}))]), Value::Null),
            flow(
                1,
                json!([byte(0, json!({"first": 3})), byte(1, json!({"first": 10, "step": 2, "count": 3}))]),
                json!([64]),
            ),
        ];
        let mut classifier = Classifier::of(&flows).unwrap();
        let mut find = |start: &[u8], length: usize| {
            let mut frame = start.to_vec();
            frame.resize(length, 0);
            classifier.find(1, &frame)
        };
        assert_eq!((find(&[1], 60), find(&[2], 99), find(&[4], 60)), (Some(0), Some(1), None));
        assert_eq!((find(&[3, 12], 60), find(&[3, 11], 60), find(&[3, 12], 61)), (Some(2), None, None));
        assert_eq!(find(&[], 0), None);
    }

    #[test]
    fn of_equal_flows_the_one_that_is_received_at_the_port_has_the_frame() {
        let same = || json!([byte(0, json!({"first": 1}))]);
        let flows = [flow(1, same(), Value::Null), flow(2, same(), Value::Null)];
        let mut classifier = Classifier::of(&flows).unwrap();
        let mut find = |port| classifier.find(port, &[1; 60]);
        assert_eq!((find(1), find(2), find(3)), (Some(0), Some(1), Some(0)));
    }

    #[test]
    fn thousands_of_flows_of_one_shape_are_one_table() {
        let key = |number: u32| json!([{"bit_offset": 0, "bits": 32, "values": {"first": number}}]);
        let flows: Vec<FlowRequest> = (0..4096).map(|number| flow(1, key(number), Value::Null)).collect();
        let mut classifier = Classifier::of(&flows).unwrap();
        assert_eq!(classifier.shapes.len(), 1);
        assert!((0..4096u32).all(|number| classifier.find(1, &number.to_be_bytes()) == Some(number)));
    }
}
