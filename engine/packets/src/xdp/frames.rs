//! What the program in the kernel makes the frames of a sender of: templates and the tables of what differs, computed
//! before a transmission, so that each frame is byte for byte the one that `frame_writer.rs` would write.

use std::borrow::Cow;
use std::iter::Sum;
use std::ops::Range;

use crate::checksum::{add, finish};
use crate::error::{EngineError, ErrorKind};
use crate::flow_images::{FlowImages, PIECE_BYTES};
use crate::frame_writer::{FrameParts, FrameWriter};
use crate::signature::scramble;
use crate::sys::bpf::LARGEST_FRAME;
use crate::sys::bpf::generating::{
    Checksum, KernelSender, MAXIMUM_CHECKSUMS, MAXIMUM_PIECES, NEVER_ZERO, ODD, SIGNED, Variant,
};
use crate::template::Template;
use crate::traffic::{Choice, FrameChecksum, Shape};

/// The most memory that the images of one sender's flows may take in the kernel: sixteen million flows of one piece.
const MOST_IMAGE_BYTES: usize = 1 << 30;
/// The most memory that all templates of a trial may take.
const MOST_TEMPLATE_BYTES: usize = 256 << 20;
/// Templates are copied in blocks of this many bytes, the smallest frame's.
pub const BLOCK_BYTES: usize = 64;

/// Entries that tables of the program have, or need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Of each template.
    pub template_bytes: usize,
    /// With a template each.
    pub variants: usize,
    pub order: usize,
    pub images: usize,
    pub sums: usize,
}

/// The frames of one sender.
#[derive(Debug)]
pub struct SenderFrames<'a> {
    parts: FrameParts<'a>,
    /// Empty where frames differ in flow, signature and one checksum alone.
    variants: Vec<Variant>,
    order: Vec<u64>,
    /// The seed by which each period begins somewhere else in the order.
    seed: Option<u64>,
    images: Images<'a>,
    /// Per flow: for each checksum what the flow adds to it.
    sums: Vec<u64>,
    checksums: usize,
    longest: usize,
}

/// What differs between flows.
#[derive(Debug)]
enum Images<'a> {
    /// The bytes themselves.
    Whole(Cow<'a, FlowImages>),
    /// What they differ in from the template, so that lengths, which differ between variants, are left alone.
    Differences { start: usize, pieces: usize, images: Vec<[u8; PIECE_BYTES]> },
}

impl Room {
    /// Of tables that suffice for most trials.
    pub const USUAL: Self = Self { template_bytes: 2048, variants: 64, order: 64, images: 4096, sums: 4096 };

    /// Whether tables with this room suffice for what `needed` says.
    pub fn suffices_for(&self, needed: &Self) -> bool {
        self.joined(needed) == *self
    }

    /// Room for what the tables hold now and for what `needed` says, and some more.
    pub fn grown(&self, needed: &Self) -> Self {
        let grown = |count: usize| count.next_power_of_two();
        // Many templates are seldom long: what was needed for others is not kept.
        let keeps = self.joined(needed).bytes_of_templates() <= MOST_TEMPLATE_BYTES;
        let templates = if keeps { self.joined(needed) } else { *needed };
        let joined = self.joined(needed);
        Self {
            template_bytes: templates.template_bytes,
            variants: templates.variants,
            order: grown(joined.order),
            images: grown(joined.images),
            sums: grown(joined.sums),
        }
    }

    fn joined(&self, other: &Self) -> Self {
        Self {
            template_bytes: self.template_bytes.max(other.template_bytes),
            variants: self.variants.max(other.variants),
            order: self.order.max(other.order),
            images: self.images.max(other.images),
            sums: self.sums.max(other.sums),
        }
    }

    fn bytes_of_templates(&self) -> usize {
        self.template_bytes * self.variants
    }

    /// # Errors
    /// Where the templates would take more of the kernel's memory than they may.
    pub fn check(&self) -> Result<(), EngineError> {
        if self.bytes_of_templates() <= MOST_TEMPLATE_BYTES {
            return Ok(());
        }
        let message = format!(
            "{} different frames of up to {} bytes take {} MiB of the kernel's memory, and the limit is {} MiB",
            self.variants,
            self.template_bytes,
            self.bytes_of_templates() >> 20,
            MOST_TEMPLATE_BYTES >> 20
        );
        let next = "use a file of fewer or shorter frames, or `driver: net_af_xdp` for this traffic";
        Err(EngineError::new(ErrorKind::BadRequest, message, next))
    }
}

impl Sum for Room {
    fn sum<I: Iterator<Item = Self>>(rooms: I) -> Self {
        let none = Self { template_bytes: BLOCK_BYTES, variants: 0, order: 0, images: 0, sums: 0 };
        rooms.fold(none, |sum, room| Self {
            template_bytes: sum.template_bytes.max(room.template_bytes),
            variants: sum.variants + room.variants,
            order: sum.order + room.order,
            images: sum.images + room.images,
            sums: sum.sums + room.sums,
        })
    }
}

impl<'a> SenderFrames<'a> {
    /// Computes the tables of what `writer` writes.
    ///
    /// # Errors
    /// Where frames differ in more than the program can write.
    pub fn of(writer: &'a FrameWriter) -> Result<Self, EngineError> {
        let parts = writer.parts();
        let frames = if parts.template.is_varied() { Self::varied(parts) } else { Self::uniform(parts) }?;
        let pieces = frames.images.pieces();
        if pieces > MAXIMUM_PIECES {
            let most = MAXIMUM_PIECES * PIECE_BYTES;
            return Err(refuse(&format!("flows that differ over more than {most} bytes of their headers")));
        }
        if frames.longest > LARGEST_FRAME {
            return Err(refuse(&format!("frames of more than {LARGEST_FRAME} bytes, which do not fit into a page,")));
        }
        Ok(frames)
    }

    fn uniform(parts: FrameParts<'a>) -> Result<Self, EngineError> {
        let images = match parts.images {
            Some(images) => Cow::Borrowed(images),
            None => Cow::Owned(
                FlowImages::within(parts.template, parts.flows.clone(), MOST_IMAGE_BYTES)
                    .ok_or_else(|| too_many(&parts.flows))?,
            ),
        };
        let sums: Vec<u64> = images.sums().iter().map(|sum| sum.swap_bytes().into()).collect();
        Ok(Self {
            longest: parts.template.length(),
            variants: Vec::new(),
            order: Vec::new(),
            seed: None,
            checksums: usize::from(!sums.is_empty()),
            sums,
            images: Images::Whole(images),
            parts,
        })
    }

    fn varied(parts: FrameParts<'a>) -> Result<Self, EngineError> {
        let template = parts.template;
        let (order, seed) = match template {
            Template::Layered(layered) => layered.sizes().order(),
            Template::Captured(captured) => ((0..captured.count() as u32).collect(), None),
            Template::Udp(_) => (vec![0], None),
        };
        let count = order.iter().max().map_or(0, |last| *last as usize + 1);
        let variants = (0..count).map(|shape| variant(template, shape)).collect::<Result<Vec<_>, _>>()?;
        let (images, sums, checksums) = match template {
            // The flow of a file's frame is in its bytes.
            Template::Captured(_) => (Images::none(), Vec::new(), 0),
            _ => differences(&parts)?,
        };
        let longest = template.length();
        let order = order.into_iter().map(u64::from).collect();
        Ok(Self { parts, variants, order, seed, images, sums, checksums, longest })
    }

    /// What the tables need for these frames.
    pub fn room(&self) -> Room {
        Room {
            template_bytes: self.longest.next_power_of_two().max(BLOCK_BYTES),
            variants: self.variants.len().max(1),
            order: self.order.len(),
            images: self.images.pieces() * self.parts.flows.len(),
            sums: self.sums.len(),
        }
    }

    /// The bytes of each variant's template.
    pub fn templates(&self) -> impl Iterator<Item = Cow<'_, [u8]>> {
        let uniform = self.variants.is_empty().then(|| Cow::Borrowed(self.parts.template.constant()));
        let varied = (0..self.variants.len()).map(|shape| Cow::Owned(whole_frame(self.parts.template, shape, 0)));
        uniform.into_iter().chain(varied)
    }

    pub fn variants(&self) -> &[Variant] {
        &self.variants
    }

    pub fn order(&self) -> &[u64] {
        &self.order
    }

    pub fn images(&self) -> &[[u8; PIECE_BYTES]] {
        match &self.images {
            Images::Whole(images) => images.images(),
            Images::Differences { images, .. } => images,
        }
    }

    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// The sender's fields that say where its tables are, `first` being the first entry of each that is its own.
    pub fn fill_in(&self, first: &Room, sender: KernelSender) -> KernelSender {
        let FrameParts { template, first_flow, of_stream, flows, .. } = &self.parts;
        let (length, position) = (self.order.len().max(1) as u64, u64::from(flows.start));
        let period = position / length;
        KernelSender {
            flows: flows.len() as u32,
            first_flow: first_flow + flows.start,
            length: template.length() as u32,
            signature_at: template.signature_offset() as u32,
            checksum_at: template.payload_checksum().unwrap_or(0) as u32,
            image_at: self.images.start() as u32,
            pieces: self.images.pieces() as u32,
            first_image: first.images as u32,
            first_sum: first.sums as u32,
            first_variant: first.variants as u32,
            is_varied: u32::from(!self.variants.is_empty()),
            checksums: self.checksums as u32,
            is_turned: self.seed.is_some().into(),
            first_order: first.order as u32,
            order_length: length as u32,
            seed: self.seed.unwrap_or(0),
            jump: u64::from(*of_stream) - flows.len() as u64 + 1,
            place: position % length,
            period,
            turned: self.seed.map_or(0, |seed| scramble(seed ^ period) % length),
            ..sender
        }
    }
}

impl Images<'_> {
    fn none() -> Self {
        Self::Differences { start: 0, pieces: 0, images: Vec::new() }
    }

    fn start(&self) -> usize {
        match self {
            Self::Whole(images) => images.start(),
            Self::Differences { start, .. } => *start,
        }
    }

    fn pieces(&self) -> usize {
        match self {
            Self::Whole(images) => images.pieces(),
            Self::Differences { pieces, .. } => *pieces,
        }
    }
}

/// A frame of this shape and flow, all but its signature and its checksums.
fn whole_frame(template: &Template, shape: usize, flow: u32) -> Vec<u8> {
    let choice = Choice { shape, flow, sequence: 0 };
    let mut frame = template.constant().to_vec();
    frame.truncate(template.shape(choice).map_or(0, |shape| shape.length));
    template.write_varied(choice, &mut frame);
    frame
}

fn variant(template: &Template, index: usize) -> Result<Variant, EngineError> {
    let shape = shape_of(template, index)?;
    let checks = shape.checksums();
    if checks.len() > MAXIMUM_CHECKSUMS {
        return Err(refuse(&format!("frames of {} checksums and several sizes", checks.len())));
    }
    let mut variant = Variant {
        length: shape.length as u32,
        signature_at: shape.signature as u32,
        checksums: checks.len() as u32,
        ..Variant::default()
    };
    for (place, check) in variant.checksum.iter_mut().zip(checks) {
        let signed = check.variable().iter().find(|(range, _)| range.start == shape.signature);
        let kind = [
            (check.is_never_zero(), NEVER_ZERO),
            (signed.is_some(), SIGNED),
            (signed.is_some_and(|(_, is_odd)| *is_odd), ODD),
        ];
        let kind = kind.into_iter().filter(|(applies, _)| *applies).map(|(_, kind)| kind).sum();
        *place = Checksum { at: check.at as u16, kind, sum: kernel_sum(check.constant()) as u32 };
    }
    if let Template::Captured(captured) = template {
        let choice = captured.choose(index as u64);
        let of_flow = captured.frames_of(choice.flow) as u32;
        (variant.flow, variant.turn, variant.of_flow) = (choice.flow, choice.sequence, of_flow);
        variant.laps = (1 << 32) / u64::from(of_flow.max(1));
    }
    Ok(variant)
}

fn shape_of(template: &Template, index: usize) -> Result<&Shape, EngineError> {
    template.shape(Choice { shape: index, flow: 0, sequence: 0 }).ok_or_else(|| refuse("frames without a shape"))
}

/// A sum of 16-bit words, folded, as the program adds them: in the byte order of memory (RFC 1071 2 (B)).
fn kernel_sum(sum: u64) -> u64 {
    (!finish(sum)).swap_bytes().into()
}

/// What each flow differs in from the templates, which have the stream's first flow, and what it adds to checksums.
fn differences(parts: &FrameParts<'_>) -> Result<(Images<'static>, Vec<u64>, usize), EngineError> {
    let (template, flows) = (parts.template, parts.flows.clone());
    // All sizes have the same headers: those of the smallest frame tell of all.
    let first = whole_frame(template, 0, 0);
    let shape = shape_of(template, 0)?;
    let checks = shape.checksums();
    let mut frame = first.clone();
    let (mut begin, mut end) = (usize::MAX, 0);
    for flow in flows.clone() {
        template.write_varied(Choice { shape: 0, flow, sequence: 0 }, &mut frame);
        let header = 0..shape.signature;
        let is_different = |at: &usize| first[*at] != frame[*at];
        if let Some(at) = header.clone().find(is_different) {
            begin = begin.min(at);
            end = end.max(header.rev().find(is_different).map_or(at, |last| last) + 1);
        }
    }
    let pieces = end.saturating_sub(begin).div_ceil(PIECE_BYTES);
    let start = if pieces == 0 { 0 } else { begin.min(first.len() - pieces * PIECE_BYTES) };
    if flows.len() * pieces * PIECE_BYTES > MOST_IMAGE_BYTES {
        return Err(too_many(&flows));
    }
    let mut images = Vec::with_capacity(flows.len() * pieces);
    let mut sums = Vec::with_capacity(flows.len() * checks.len());
    for flow in flows {
        template.write_varied(Choice { shape: 0, flow, sequence: 0 }, &mut frame);
        for piece in 0..pieces {
            let from = start + piece * PIECE_BYTES;
            images.push(std::array::from_fn(|byte| first[from + byte] ^ frame[from + byte]));
        }
        sums.extend(checks.iter().map(|check| flow_sum(check, shape, &frame)));
    }
    Ok((Images::Differences { start, pieces, images }, sums, checks.len()))
}

/// What a flow adds to a checksum: its bytes under it that differ between flows.
fn flow_sum(check: &FrameChecksum, shape: &Shape, frame: &[u8]) -> u64 {
    let of_flow = check.variable().iter().filter(|(range, _)| range.start != shape.signature);
    let sum = of_flow.fold(0, |sum, (range, is_odd)| {
        let part = add(0, &frame[range.clone()]);
        sum + if *is_odd { u64::from((!finish(part)).swap_bytes()) } else { part }
    });
    kernel_sum(sum)
}

fn too_many(flows: &Range<u32>) -> EngineError {
    refuse(&format!("{} flows, whose addresses would take more than {} MiB,", flows.len(), MOST_IMAGE_BYTES >> 20))
}

fn refuse(what: &str) -> EngineError {
    let message = format!("{what} are not made in the kernel");
    EngineError::new(ErrorKind::BadRequest, message, "use `driver: net_af_xdp` for this traffic")
}
