//! What differs between the flows of a stream, computed once per trial, so that a frame is patched and not built.
//!
//! All bytes in which any two flows differ lie in one window of the header. Each flow's window is kept as an image, in
//! pieces of 16 bytes, one flow after the other, so that the transmit loop reads them in order. A stream of one flow
//! has an empty window. Where the images would not fit their budget, a flow's window is computed when it is sent.

use std::ops::Range;

use crate::template::Template;

/// Images are copied in pieces of this many bytes.
pub const PIECE_BYTES: usize = 16;
/// The most memory that the images of one stream may take.
const BUDGET_BYTES: usize = 16 << 20;

/// The bytes in which the flows of a stream differ, ready to be copied.
#[derive(Debug, Clone)]
pub struct FlowImages {
    /// The first byte of the window.
    start: usize,
    /// Pieces per flow.
    pieces: usize,
    images: Vec<[u8; PIECE_BYTES]>,
    /// Per flow: the sum for the checksum that covers the signature, without the signature; empty where there is none.
    sums: Vec<u16>,
}

impl FlowImages {
    /// The images of `flows` of `template`, the first in front; `None` where they would be too large.
    pub fn new(template: &Template, flows: Range<u32>) -> Option<Self> {
        Self::within(template, flows, BUDGET_BYTES)
    }

    /// As [`Self::new`], with another bound on their bytes.
    pub fn within(template: &Template, flows: Range<u32>, budget_bytes: usize) -> Option<Self> {
        let (start, pieces) = window(template, flows.clone(), budget_bytes)?;
        let mut images = Vec::with_capacity(flows.len() * pieces);
        let mut sums = Vec::new();
        let mut frame = template.constant().to_vec();
        for flow in flows {
            template.compose(flow, &mut frame);
            images.extend(frame[start..start + pieces * PIECE_BYTES].chunks_exact(PIECE_BYTES).map(piece));
            sums.extend(template.payload_checksum().map(|_| template.sum_without_signature(&frame)));
        }
        Some(Self { start, pieces, images, sums })
    }

    /// The first byte of the window in which flows differ.
    pub fn start(&self) -> usize {
        self.start
    }

    /// All pieces, flow by flow.
    pub fn images(&self) -> &[[u8; PIECE_BYTES]] {
        &self.images
    }

    /// Per flow, as [`Self::sum`]; empty where there is no checksum.
    pub fn sums(&self) -> &[u16] {
        &self.sums
    }

    /// Pieces per flow.
    pub fn pieces(&self) -> usize {
        self.pieces
    }

    /// Copies the image of `flow` into a frame that holds the constant bytes. `PIECES` is [`Self::pieces`].
    #[inline(always)]
    pub fn copy<const PIECES: usize>(&self, flow: u32, frame: &mut [u8]) {
        let first = flow as usize * PIECES;
        let Some(images) = self.images.get(first..first + PIECES) else { return };
        let Some(window) = frame.get_mut(self.start..self.start + PIECES * PIECE_BYTES) else { return };
        window.copy_from_slice(images.as_flattened());
    }

    /// As [`Self::copy`], where the number of pieces is not known when this is compiled.
    #[inline]
    pub fn copy_any(&self, flow: u32, frame: &mut [u8]) {
        let first = flow as usize * self.pieces;
        let Some(images) = self.images.get(first..first + self.pieces) else { return };
        let bytes = images.as_flattened();
        if let Some(window) = frame.get_mut(self.start..self.start + bytes.len()) {
            window.copy_from_slice(bytes);
        }
    }

    /// The sum of everything that the checksum covers but the signature; 0 where there is no checksum.
    #[inline(always)]
    pub fn sum(&self, flow: u32) -> u16 {
        self.sums.get(flow as usize).copied().unwrap_or(0)
    }
}

/// Where the bytes lie in which flows differ, in pieces; `None` where their images exceed the budget.
fn window(template: &Template, flows: Range<u32>, budget_bytes: usize) -> Option<(usize, usize)> {
    let count = flows.len();
    let fits = |pieces: usize| count * pieces * PIECE_BYTES <= budget_bytes;
    if count > 1 && !fits(1) {
        return None;
    }
    let first = template.constant();
    let mut frame = first.to_vec();
    let (mut begin, mut end) = (usize::MAX, 0);
    // Those of the first flow are what the constant bytes hold.
    for flow in flows {
        template.compose(flow, &mut frame);
        let header = template.signature_offset();
        let mut differing = first[..header].iter().zip(&frame[..header]).enumerate().filter(|(_, (a, b))| a != b);
        if let Some((index, _)) = differing.next() {
            begin = begin.min(index);
            end = end.max(differing.next_back().map_or(index, |(last, _)| last) + 1);
        }
    }
    let pieces = end.saturating_sub(begin).div_ceil(PIECE_BYTES);
    if pieces == 0 {
        return Some((0, 0));
    }
    // The last piece may reach beyond the header, but not beyond the frame.
    let start = begin.min(first.len().checked_sub(pieces * PIECE_BYTES)?);
    fits(pieces).then_some((start, pieces))
}

fn piece(bytes: &[u8]) -> [u8; PIECE_BYTES] {
    let mut piece = [0; PIECE_BYTES];
    piece.copy_from_slice(bytes);
    piece
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::tests::request;

    fn template(change: impl Fn(&mut nicbench_protocol::StreamRequest)) -> Template {
        let mut stream = request(4, 64);
        change(&mut stream);
        Template::new(&stream).unwrap()
    }

    #[test]
    fn a_frame_patched_with_an_image_is_the_composed_frame() {
        for version in [4, 6] {
            let template = Template::new(&request(version, 128)).unwrap();
            let images = FlowImages::new(&template, 0..24).unwrap();
            for flow in [0, 7, 23, 1] {
                let (mut patched, mut composed) = (template.constant().to_vec(), template.constant().to_vec());
                images.copy_any(flow, &mut patched);
                template.compose(flow, &mut composed);
                assert_eq!(patched, composed, "IPv{version}, flow {flow}");
            }
        }
    }

    #[test]
    fn the_addresses_and_ports_of_ipv4_are_one_piece() {
        assert_eq!(FlowImages::new(&template(|_| {}), 0..24).unwrap().pieces(), 1);
    }

    #[test]
    fn one_flow_needs_no_image() {
        assert_eq!(FlowImages::new(&template(|_| {}), 0..1).unwrap().pieces(), 0);
    }

    #[test]
    fn a_range_of_flows_has_its_own_images() {
        let template = template(|_| {});
        let images = FlowImages::new(&template, 7..9).unwrap();
        let (mut patched, mut composed) = (template.constant().to_vec(), template.constant().to_vec());
        images.copy_any(1, &mut patched);
        template.compose(8, &mut composed);
        assert_eq!(patched, composed);
    }

    #[test]
    fn images_beyond_the_budget_are_not_made() {
        assert!(FlowImages::within(&template(|_| {}), 0..24, 23 * PIECE_BYTES).is_none());
        assert!(FlowImages::within(&template(|_| {}), 0..24, 24 * PIECE_BYTES).is_some());
    }
}
