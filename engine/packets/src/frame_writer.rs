//! Makes a burst of buffers a burst of frames: constant bytes where a buffer has none, then what differs from frame to
//! frame.
//!
//! A buffer that the port took back still holds the bytes of the frame it last was. The port keeps a tag with each
//! buffer that names the stream and trial whose constant bytes it holds, and forgets it when anything was received into
//! it. So the constant part of a frame is written once per buffer, and a frame in the transmit loop costs its image
//! (addresses, ports and header checksum of its flow), the signature, and over IPv6 the UDP checksum.

use std::ops::Range;

use crate::flow_images::FlowImages;
use crate::port::Frame;
use crate::signature::{SIGNATURE_BYTES, Signature, Signer};
use crate::template::Template;

/// A place in the order of frames: flows in turn, then the next sequence number of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The flow, from 0 within the stream.
    pub flow: u32,
    /// The flow's sequence, extended to 64 bits.
    pub sequence: u64,
}

impl Cursor {
    /// Goes on to the next frame.
    #[inline(always)]
    pub fn step(&mut self, flows: u32) {
        self.flow += 1;
        if self.flow == flows {
            *self = Self { flow: 0, sequence: self.sequence + 1 };
        }
    }

    /// Goes on by `frames` frames at once.
    #[inline]
    pub fn advance(&mut self, frames: usize, flows: u32) {
        let position = u64::from(self.flow) + frames as u64;
        let flows = u64::from(flows);
        if position < flows {
            self.flow = position as u32;
            return;
        }
        self.sequence += position / flows;
        self.flow = (position % flows) as u32;
    }
}

/// What the frames of one sender are made of, for a writer that is no Rust code.
#[derive(Debug, Clone)]
pub struct FrameParts<'a> {
    pub template: &'a Template,
    /// `None` where they would be too large for this process's cache, or frames are varied.
    pub images: Option<&'a FlowImages>,
    /// The number of the stream's first flow over all streams, and its flows.
    pub first_flow: u32,
    pub of_stream: u32,
    /// Those that are sent, from 0 within the stream.
    pub flows: Range<u32>,
}

/// Writes the frames of one sender.
#[derive(Debug)]
pub struct FrameWriter {
    template: Template,
    signer: Signer,
    /// The number of the stream's first flow over all streams.
    first_flow: u32,
    /// Flows of the stream, and those of them that are written here.
    of_stream: u32,
    offset: u32,
    flows: u32,
    /// `None` where they would be too large: each flow's bytes are then computed when it is sent.
    images: Option<FlowImages>,
    signature_offset: usize,
    payload_checksum: Option<usize>,
    tag: u64,
}

impl FrameWriter {
    /// `tag` names the constant bytes of `template`: no other template of this process may have it.
    pub fn new(template: Template, signer: Signer, first_flow: u32, flows: u32, tag: u64) -> Self {
        Self::of_range(template, signer, first_flow, flows, 0..flows, tag)
    }

    /// Writes only the flows of `range`, from 0 within a stream of `of_stream` flows.
    pub fn of_range(
        template: Template,
        signer: Signer,
        first_flow: u32,
        of_stream: u32,
        range: Range<u32>,
        tag: u64,
    ) -> Self {
        // Varied frames write their flow's bytes themselves.
        let images = if template.is_varied() { None } else { FlowImages::new(&template, range.clone()) };
        Self {
            signature_offset: template.signature_offset(),
            payload_checksum: template.payload_checksum(),
            template,
            signer,
            first_flow,
            of_stream,
            offset: range.start,
            flows: range.end - range.start,
            images,
            tag,
        }
    }

    /// What the frames are made of.
    pub fn parts(&self) -> FrameParts<'_> {
        FrameParts {
            template: &self.template,
            images: self.images.as_ref(),
            first_flow: self.first_flow,
            of_stream: self.of_stream,
            flows: self.offset..self.offset + self.flows,
        }
    }

    /// The length of the largest frame, without FCS.
    pub fn length(&self) -> usize {
        self.template.length()
    }

    /// The name of the constant bytes, for [`crate::port::Port::allocate_prefilled`].
    pub fn tag(&self) -> u64 {
        self.tag
    }

    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Writes `frames`, of which the first is at `cursor`: the first `kept` were written before and get new times only.
    #[inline]
    pub fn write(&self, frames: &mut [Frame], kept: usize, cursor: Cursor, time_ns: impl FnMut() -> u64) {
        if self.template.is_varied() {
            return self.write_varied(frames, kept, cursor, time_ns);
        }
        match (&self.images, self.payload_checksum) {
            // The common cases have loops of their own, in which everything but the data is a constant.
            (Some(images), None) if images.pieces() == 0 => self.write_all(frames, kept, cursor, time_ns, |_, _| {}),
            (Some(images), None) if images.pieces() == 1 => {
                self.write_all(frames, kept, cursor, time_ns, |flow, bytes| images.copy::<1>(flow, bytes))
            }
            _ => self.write_all(frames, kept, cursor, time_ns, |flow, bytes| self.write_flow(flow, bytes)),
        }
    }

    #[inline(always)]
    fn write_all(
        &self,
        frames: &mut [Frame],
        kept: usize,
        mut cursor: Cursor,
        mut time_ns: impl FnMut() -> u64,
        write_flow: impl Fn(u32, &mut [u8]),
    ) {
        let (kept, fresh) = frames.split_at_mut(kept);
        for frame in kept {
            self.sign(frame.bytes_mut(), cursor, time_ns());
            cursor.step(self.flows);
        }
        for frame in fresh {
            let is_prefilled = frame.is_prefilled();
            let bytes = frame.bytes_mut();
            if !is_prefilled {
                self.template.write_constant(bytes);
            }
            write_flow(cursor.flow, bytes);
            self.sign(bytes, cursor, time_ns());
            cursor.step(self.flows);
        }
    }

    /// Writes frames that differ in size, or come from a file.
    fn write_varied(&self, frames: &mut [Frame], kept: usize, mut cursor: Cursor, mut time_ns: impl FnMut() -> u64) {
        for (index, frame) in frames.iter_mut().enumerate() {
            let choice = self.template.choose(self.offset + cursor.flow, cursor.sequence, self.of_stream);
            cursor.step(self.flows);
            let Some(shape) = self.template.shape(choice) else { return };
            if index >= kept {
                if !frame.is_prefilled() {
                    self.template.write_constant(frame.bytes_mut());
                }
                frame.shorten(shape.length);
                self.template.write_varied(choice, frame.bytes_mut());
            }
            let flow = self.first_flow + choice.flow;
            let signature = Signature { flow, sequence: choice.sequence, time_ns: time_ns() };
            let bytes = frame.bytes_mut();
            if let Some(place) = bytes.get_mut(shape.signature..).and_then(|rest| rest.first_chunk_mut()) {
                self.signer.write(place, signature);
            }
            shape.write_checksums(bytes);
        }
    }

    /// Writes all that differs into a frame that holds the constant bytes.
    pub fn patch(&self, bytes: &mut [u8], flow: u32, signature: Signature) {
        self.write_flow(flow, bytes);
        self.write_signature(bytes, flow, signature);
    }

    #[inline]
    fn write_flow(&self, flow: u32, bytes: &mut [u8]) {
        match &self.images {
            Some(images) => images.copy_any(flow, bytes),
            None => self.template.compose(self.offset + flow, bytes),
        }
    }

    #[inline(always)]
    fn sign(&self, bytes: &mut [u8], cursor: Cursor, time_ns: u64) {
        let flow = self.first_flow + self.offset + cursor.flow;
        let signature = Signature { flow, sequence: cursor.sequence as u32, time_ns };
        self.write_signature(bytes, cursor.flow, signature);
    }

    #[inline(always)]
    fn write_signature(&self, bytes: &mut [u8], flow: u32, signature: Signature) {
        let words = self.signer.words(signature);
        let Some(place) = bytes.get_mut(self.signature_offset..self.signature_offset + SIGNATURE_BYTES) else { return };
        place[..8].copy_from_slice(&words[0].to_le_bytes());
        place[8..].copy_from_slice(&words[1].to_le_bytes());
        if let Some(place) = self.payload_checksum {
            self.write_checksum(bytes, place, flow, words);
        }
    }

    /// RFC 1624: what the signature adds to the sum of everything else.
    #[inline]
    fn write_checksum(&self, bytes: &mut [u8], place: usize, flow: u32, words: [u64; 2]) {
        let constant = match &self.images {
            Some(images) => images.sum(flow),
            None => self.template.sum_without_signature(bytes),
        };
        // A sum of words in the other byte order is the sum in the other byte order (RFC 1071, 2 (B)).
        let halves = |word: u64| (word & 0xFFFF_FFFF) + (word >> 32);
        let mut sum = u64::from(constant.swap_bytes()) + halves(words[0]) + halves(words[1]);
        sum = (sum >> 32) + (sum & 0xFFFF_FFFF);
        sum = (sum >> 16) + (sum & 0xFFFF);
        sum = (sum >> 16) + (sum & 0xFFFF);
        sum = (sum >> 16) + (sum & 0xFFFF);
        // RFC 768, RFC 8200 8.1: a checksum of zero would say that there is none, and is sent as 0xFFFF.
        let sum = match !(sum as u16) {
            0 => 0xFFFF,
            sum => sum,
        };
        if let Some(place) = bytes.get_mut(place..place + 2) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_at_once_are_as_many_single_steps() {
        for flows in [1, 3, 64] {
            let (mut stepped, mut advanced) = (Cursor::default(), Cursor::default());
            for frames in [1, 2, 5, 32, 64, 0] {
                (0..frames).for_each(|_| stepped.step(flows));
                advanced.advance(frames, flows);
                assert_eq!(stepped, advanced, "{flows} flows");
            }
        }
    }
}
