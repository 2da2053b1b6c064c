//! Frames: a length, a kind, the number of a command, and what belongs to the kind. Little endian.

use std::io::{Error, ErrorKind, Read};

/// Nothing that is asked or answered in one piece is larger.
pub const MOST_BYTES: usize = 64 * 1024 * 1024;
const HEAD_BYTES: usize = 5;

pub const START: u8 = 1;
pub const INPUT: u8 = 2;
pub const INPUT_END: u8 = 3;
pub const SIGNAL: u8 = 4;
pub const CREDIT: u8 = 5;
pub const READ: u8 = 6;
pub const WRITE: u8 = 7;

pub const STARTED: u8 = 101;
pub const FAILED: u8 = 102;
pub const OUTPUT: u8 = 103;
pub const ERRORS: u8 = 104;
pub const OUTPUT_END: u8 = 105;
pub const EXITED: u8 = 106;
pub const CONTENT: u8 = 107;
pub const TAKEN: u8 = 108;

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub id: u32,
    pub body: Vec<u8>,
}

impl Frame {
    /// As it goes over the port.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(HEAD_BYTES + self.body.len()).expect("bodies are bounded");
        let mut bytes = Vec::with_capacity(4 + HEAD_BYTES + self.body.len());
        bytes.extend(length.to_le_bytes());
        bytes.push(self.kind);
        bytes.extend(self.id.to_le_bytes());
        bytes.extend(&self.body);
        bytes
    }

    /// The next one; None at the end. InvalidData where the length is none that a frame has.
    pub fn read(reader: &mut impl Read) -> Result<Option<Frame>, Error> {
        let mut head = [0; 4 + HEAD_BYTES];
        match reader.read_exact(&mut head) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let length = number(&head[..4]) as usize;
        if !(HEAD_BYTES..=HEAD_BYTES + MOST_BYTES).contains(&length) {
            return Err(Error::new(ErrorKind::InvalidData, format!("a frame of {length} bytes")));
        }
        let mut body = vec![0; length - HEAD_BYTES];
        match reader.read_exact(&mut body) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
            other => other.map(|()| Some(Frame { kind: head[4], id: number(&head[5..]), body })),
        }
    }
}

/// The first four bytes as a number; 0 where there are fewer.
pub fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let frame = Frame { kind: OUTPUT, id: 7, body: b"abc".to_vec() };
        assert_eq!(Frame::read(&mut frame.bytes().as_slice()).unwrap(), Some(frame));
    }

    #[test]
    fn a_torn_frame_is_the_end() {
        let bytes = Frame { kind: OUTPUT, id: 7, body: b"abc".to_vec() }.bytes();
        assert_eq!(Frame::read(&mut &bytes[..bytes.len() - 1]).unwrap(), None);
        assert_eq!(Frame::read(&mut &bytes[..3]).unwrap(), None);
    }

    #[test]
    fn a_length_that_no_frame_has_is_refused() {
        assert!(Frame::read(&mut [255; 64].as_slice()).is_err());
        assert!(Frame::read(&mut [0; 64].as_slice()).is_err());
    }
}
