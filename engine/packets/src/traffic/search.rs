//! Where the receiver looks for a signature: in the payload of UDP or TCP first, then where the streams of the trial put theirs.

use super::headers::walk;
use crate::signature::SIGNATURE_BYTES;

/// UDP's and VXLAN's headers.
const VXLAN_BYTES: usize = 8;

/// Where a stream's frames carry their signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// First in the payload of the outermost UDP or TCP.
    Payload,
    /// First in the payload of UDP or TCP that VXLAN carries.
    Carried,
    /// At this byte of the frame.
    At(usize),
    /// Last in what IP counts as its own.
    End,
}

/// What the streams of a trial use beside [`Search::Payload`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elsewhere(Vec<Search>);

impl Elsewhere {
    pub fn new(searches: impl Iterator<Item = Search>) -> Self {
        let mut all: Vec<Search> = Vec::new();
        for search in searches.filter(|search| *search != Search::Payload) {
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

impl Search {
    /// Where the signature would begin; `None` where the frame cannot hold one there.
    pub fn offset(self, frame: &[u8]) -> Option<usize> {
        let offset = match self {
            Self::Payload => payload_offset(frame)?,
            Self::Carried => {
                let carried = walk(frame, walk(frame, 0)?.payload + VXLAN_BYTES)?;
                carried.transport?;
                carried.payload
            }
            Self::At(offset) => offset,
            Self::End => walk(frame, 0)?.end.checked_sub(SIGNATURE_BYTES)?,
        };
        (offset + SIGNATURE_BYTES <= frame.len()).then_some(offset)
    }
}

/// Where the payload of the outermost UDP or TCP begins, behind any tags.
pub fn payload_offset(frame: &[u8]) -> Option<usize> {
    let headers = walk(frame, 0)?;
    headers.transport.map(|_| headers.payload)
}
