//! What the frames of one flow are: bytes that stay, fields that vary, filler, signature, lengths and checksums.

use nicbench_protocol::{Filler, FlowRequest, FrameSizes, SizeSweep};

use super::fixups::Fixups;
use super::values::Field;
use crate::error::{EngineError, ErrorKind};
use crate::port::{PortFacts, TAG_TYPE};
use crate::signature::{SIGNATURE_BYTES, scramble};
use crate::traffic::sizes::{Refused, Sizes};
use crate::wire::ethernet::FCS_BYTES;

/// Makes the frames of a flow, each from its number.
#[derive(Debug, Clone)]
pub struct Program {
    /// The largest frame, without what varies.
    image: Vec<u8>,
    template_bytes: usize,
    varying: Vec<Field>,
    fixups: Fixups,
    sizes: Lengths,
    is_signed: bool,
    is_counted: bool,
}

/// Sizes with FCS.
#[derive(Debug, Clone)]
enum Lengths {
    Listed(Sizes),
    Random { from: u32, to: u32, seed: u64 },
}

impl Lengths {
    fn of(sizes: &FrameSizes) -> Result<Self, Refused> {
        Ok(match sizes {
            FrameSizes::Fixed { fixed } => Self::Listed(Sizes::one(*fixed)),
            FrameSizes::Sweep { from, to, step } => {
                Self::Listed(Sizes::sweep(SizeSweep { from: *from, to: *to, step: *step })?)
            }
            FrameSizes::Weighted { weighted, seed } => Self::Listed(Sizes::mix(weighted, *seed)?),
            FrameSizes::Random { random } if random.from <= random.to => {
                Self::Random { from: random.from, to: random.to, seed: random.seed }
            }
            FrameSizes::Random { random } => {
                let what = format!("random sizes from {} to {}", random.from, random.to);
                return Err((what, "give `from` not above `to`"));
            }
        })
    }

    fn smallest(&self) -> u32 {
        match self {
            Self::Listed(sizes) => sizes.smallest(),
            Self::Random { from, .. } => *from,
        }
    }

    fn largest(&self) -> u32 {
        match self {
            Self::Listed(sizes) => sizes.largest(),
            Self::Random { to, .. } => *to,
        }
    }

    #[inline]
    fn of_frame(&self, number: u64) -> u32 {
        match self {
            Self::Listed(sizes) => sizes.frame_bytes[sizes.index(number)],
            Self::Random { from, to, seed } => {
                let count = u128::from(to - from) + 1;
                from + ((u128::from(scramble(seed ^ scramble(number))) * count) >> 64) as u32
            }
        }
    }
}

impl Program {
    /// # Errors
    /// `frame_size` where headers and signature, or the port, do not allow the sizes: the message names the smallest.
    pub fn of(request: &FlowRequest, port: &PortFacts) -> Result<Self, EngineError> {
        let refuse = |(what, next): Refused| {
            EngineError::new(ErrorKind::BadRequest, format!("flow {}: {what}", request.name), next)
        };
        let template = bytes_of_hex(&request.template).ok_or_else(|| {
            refuse(("`template` is no hexadecimal text".into(), "give two hexadecimal digits for each byte"))
        })?;
        let sizes = Lengths::of(&request.sizes).map_err(refuse)?;
        check_sizes(request, &template, &sizes, port)?;
        let length = sizes.largest() as usize - FCS_BYTES as usize;
        let mut image = template.clone();
        fill(&mut image, length, &request.filler).map_err(refuse)?;
        let mut varying = Vec::new();
        for field in &request.fields {
            let field = Field::of(field).map_err(refuse)?;
            if field.place.end() > template.len() {
                let what = format!("a field ends behind byte {}, where the template does", template.len());
                return Err(refuse((what, "make the template longer")));
            }
            match field.constant() {
                Some(value) => field.place.put(&mut image, value),
                None => varying.push(field),
            }
        }
        let fixups = Fixups::of(&request.fixups, template.len()).map_err(refuse)?;
        let is_counted = request.signature || request.matches.is_some();
        Ok(Self {
            image,
            template_bytes: template.len(),
            varying,
            fixups,
            sizes,
            is_signed: request.signature,
            is_counted,
        })
    }

    /// The length of frame `number`, without FCS.
    #[inline]
    pub fn length(&self, number: u64) -> usize {
        (self.sizes.of_frame(number) - FCS_BYTES) as usize
    }

    /// Whether frames bear a signature.
    pub fn is_signed(&self) -> bool {
        self.is_signed
    }

    /// Whether frames are told from others where they arrive: by their signature, or by what they match.
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Writes frame `number`, but for signature and fixups.
    #[inline]
    pub fn write(&self, number: u64, frame: &mut [u8]) {
        let length = frame.len();
        frame.copy_from_slice(&self.image[..length]);
        self.varying.iter().for_each(|field| field.write(number, frame));
    }

    /// Writes the signature, and what depends on it and on the length.
    #[inline]
    pub fn finish(&self, frame: &mut [u8], signature: [u64; 2]) {
        if let Some(place) = frame.last_chunk_mut::<SIGNATURE_BYTES>().filter(|_| self.is_signed) {
            place[..8].copy_from_slice(&signature[0].to_le_bytes());
            place[8..].copy_from_slice(&signature[1].to_le_bytes());
        }
        self.fixups.apply(frame);
    }

    /// Whether what came behind the headers of frame `number` is what was sent: headers may have been rewritten, or be
    /// others altogether.
    #[inline]
    pub fn is_intact(&self, number: u64, received: &[u8]) -> bool {
        let length = self.length(number);
        let filler = &self.image[self.template_bytes..length - SIGNATURE_BYTES];
        let end = received.len() - SIGNATURE_BYTES.min(received.len());
        end.checked_sub(filler.len()).is_some_and(|begin| received[begin..end] == *filler)
    }
}

fn check_sizes(request: &FlowRequest, template: &[u8], sizes: &Lengths, port: &PortFacts) -> Result<(), EngineError> {
    let is_tagged = template.get(12..14).is_some_and(|kind| kind == TAG_TYPE.to_be_bytes());
    let signature = if request.signature { SIGNATURE_BYTES } else { 0 };
    let least = (template.len() + signature + FCS_BYTES as usize).max(port.minimum_frame_bytes as usize);
    let (smallest, largest) = (sizes.smallest() as usize, sizes.largest() as usize);
    let most = port.longest(is_tagged) as usize;
    if least <= smallest && largest <= most {
        return Ok(());
    }
    let (wrong, signed) =
        (if smallest < least { smallest } else { largest }, if signature > 0 { " and signature" } else { "" });
    let message = format!(
        "flow {}: {wrong} bytes: template{signed} need {least} bytes with FCS, and port {} takes at most {most}",
        request.name, port.name
    );
    let next = if signature > 0 { "use other sizes, or `signature: false`" } else { "use other sizes" };
    Err(EngineError::new(ErrorKind::FrameSize, message, next))
}

/// Appends filler until `image` has this length.
fn fill(image: &mut Vec<u8>, length: usize, filler: &Filler) -> Result<(), Refused> {
    let missing = length.saturating_sub(image.len());
    match filler {
        Filler::Zeros => image.resize(length, 0),
        Filler::IncrementingByte => image.extend((0..=u8::MAX).cycle().take(missing)),
        Filler::Random { seed } => {
            image.extend((0..missing as u64).map(|place| scramble(seed ^ scramble(place)) as u8));
        }
        Filler::Hex { hex } => {
            let pattern = bytes_of_hex(hex).filter(|pattern| !pattern.is_empty());
            let pattern = pattern.ok_or_else(|| {
                ("`filler.hex` is no hexadecimal text".into(), "give two hexadecimal digits for each byte")
            })?;
            image.extend(pattern.iter().cycle().take(missing));
        }
    }
    Ok(())
}

/// `None` where the text is not pairs of hexadecimal digits.
pub fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some((digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?) as u8)).collect()
}

#[cfg(test)]
pub(super) mod tests;
