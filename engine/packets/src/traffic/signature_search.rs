//! Where the receiver looks for a signature: in the payload of UDP or TCP first, then where the streams of the trial
//! put theirs.

use crate::signature::SIGNATURE_BYTES;
use crate::wire::{Header, Headers, Vxlan};

/// Where a stream's frames carry their signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureSearch {
    /// At the beginning of the payload of the outermost UDP or TCP.
    Payload,
    /// At the beginning of the payload of UDP or TCP that VXLAN carries.
    Carried,
    /// At this byte of the frame.
    At(usize),
    /// At the end of what IP counts as its own.
    End,
}

/// The searches that the streams of a trial need beside [`SignatureSearch::Payload`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtherSearches(Vec<SignatureSearch>);

impl OtherSearches {
    pub fn new(searches: impl Iterator<Item = SignatureSearch>) -> Self {
        let mut all: Vec<SignatureSearch> = Vec::new();
        for search in searches.filter(|search| *search != SignatureSearch::Payload) {
            if !all.contains(&search) {
                all.push(search);
            }
        }
        Self(all)
    }

    /// Offsets at which the frame may hold a signature.
    pub fn offsets(&self, frame: &[u8]) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(move |search| search.offset(frame))
    }
}

impl SignatureSearch {
    /// Where the signature would begin; `None` where the frame cannot hold one there.
    pub fn offset(self, frame: &[u8]) -> Option<usize> {
        let offset = match self {
            Self::Payload => payload_offset(frame)?,
            Self::Carried => {
                let carried = Headers::find(frame, Headers::find(frame, 0)?.payload + Vxlan::BYTES)?;
                carried.transport?;
                carried.payload
            }
            Self::At(offset) => offset,
            Self::End => Headers::find(frame, 0)?.end.checked_sub(SIGNATURE_BYTES)?,
        };
        (offset + SIGNATURE_BYTES <= frame.len()).then_some(offset)
    }
}

/// Where the payload of the outermost UDP or TCP begins, behind any tags.
pub fn payload_offset(frame: &[u8]) -> Option<usize> {
    let headers = Headers::find(frame, 0)?;
    headers.transport.map(|_| headers.payload)
}
