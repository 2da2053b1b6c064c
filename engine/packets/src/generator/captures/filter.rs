//! A condition on the bytes of a frame.

use nicbench_protocol::CaptureFilter;

use crate::error::{EngineError, ErrorKind};
use crate::generator::program::bytes_of_hex;

/// Bytes at a place, of which the bits of the mask count.
#[derive(Debug, Clone)]
pub struct Filter {
    offset: usize,
    /// Each with its mask.
    bytes: Vec<(u8, u8)>,
    negate: bool,
}

impl Filter {
    pub fn of(request: &CaptureFilter) -> Result<Self, EngineError> {
        let wrong = |what: &str| {
            let message = format!("capture: filter at byte {}: {what}", request.offset);
            EngineError::new(ErrorKind::BadRequest, message, "give `bytes` and `mask` as hexadecimal, equally long")
        };
        let bytes = bytes_of_hex(&request.bytes).ok_or_else(|| wrong("`bytes` is no hexadecimal text"))?;
        let mask = match &request.mask {
            None => vec![0xFF; bytes.len()],
            Some(mask) => bytes_of_hex(mask).ok_or_else(|| wrong("`mask` is no hexadecimal text"))?,
        };
        if mask.len() != bytes.len() {
            return Err(wrong("`mask` and `bytes` differ in length"));
        }
        let bytes = bytes.iter().zip(mask).map(|(byte, mask)| (byte & mask, mask)).collect();
        Ok(Self { offset: request.offset, bytes, negate: request.negate })
    }

    /// Whether a frame is as asked; one that is too short has other bytes.
    #[inline]
    pub fn holds(&self, frame: &[u8]) -> bool {
        let place = frame.get(self.offset..).and_then(|rest| rest.get(..self.bytes.len()));
        let is_equal = |place: &[u8]| place.iter().zip(&self.bytes).all(|(own, (byte, mask))| own & mask == *byte);
        place.is_some_and(is_equal) != self.negate
    }
}
