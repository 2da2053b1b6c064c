//! stdin, line by line, without a thread: what is not there yet is not waited for.

use std::io::{self, Read};

use nicbench_protocol::{ErrorKind, ErrorReport, Refusal};

/// Longer lines are not kept.
const LONGEST_LINE_BYTES: usize = 1 << 20;

/// Lines from a stream that is read without waiting.
#[derive(Debug)]
pub struct Input<Stream> {
    stream: Stream,
    bytes: Vec<u8>,
    /// Of a line that is too long: the rest of it comes yet.
    skipping: bool,
    pub ended: bool,
}

impl<Stream: Read> Input<Stream> {
    /// Nothing is read yet.
    pub fn new(stream: Stream) -> Self {
        Self { stream, bytes: Vec::new(), skipping: false, ended: false }
    }

    /// Takes what is there; call it when there is something.
    pub fn take(&mut self) {
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => self.ended = true,
            Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.ended = true,
        }
    }

    /// The next whole line that is not empty; `None` where there is none yet. The last one may lack its end.
    pub fn line(&mut self) -> Option<Result<String, Refusal>> {
        loop {
            let end = self.bytes.iter().position(|byte| *byte == b'\n');
            let Some(end) = end.or((self.ended && !self.bytes.is_empty()).then_some(self.bytes.len())) else {
                if self.bytes.len() <= LONGEST_LINE_BYTES {
                    return None;
                }
                self.bytes.clear();
                let is_first = !std::mem::replace(&mut self.skipping, true);
                return is_first.then(|| Err(bad(&format!("the line is longer than {LONGEST_LINE_BYTES} bytes"))));
            };
            let rest = self.bytes.split_off((end + 1).min(self.bytes.len()));
            let line = std::mem::replace(&mut self.bytes, rest);
            if std::mem::take(&mut self.skipping) || line.trim_ascii().is_empty() {
                continue;
            }
            return Some(String::from_utf8(line).map_err(|_| bad("the line is not UTF-8")));
        }
    }
}

fn bad(message: &str) -> Refusal {
    let error = ErrorReport::new(ErrorKind::BadRequest, message, "send one JSON object a line, in UTF-8");
    Refusal { id: None, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Result<String, ()>> {
        let mut input = Input::new(text);
        let mut found = Vec::new();
        while !input.ended {
            input.take();
            while let Some(line) = input.line() {
                found.push(line.map(|line| line.trim_end().to_owned()).map_err(|_| ()));
            }
        }
        found
    }

    #[test]
    fn empty_lines_are_nothing_and_the_last_may_lack_its_end() {
        assert_eq!(lines(b"a\n\n  \nb"), [Ok("a".into()), Ok("b".into())]);
        assert_eq!(lines(b"\xff\nb\n"), [Err(()), Ok("b".into())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_once_and_the_next_one_is_read() {
        let mut text = vec![b'x'; 3 * LONGEST_LINE_BYTES + 5];
        text.extend(b"\nnext\n");
        assert_eq!(lines(&text), [Err(()), Ok("next".into())]);
    }
}
