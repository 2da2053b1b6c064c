//! HTTP/1.1 (RFC 9112), as much of it as a transaction needs: a request by `GET`, and an answer of known length.

use crate::{FILLER, FILLER_BYTES};

const MOST_HEADERS: usize = 64;
const LONGEST_HEAD: usize = 16 * 1024;

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is no HTTP/1.1 answer, or one whose length is not given.
    NotHttp,
    /// Its status is not 200.
    Status,
    /// Its body has another length than was asked for.
    Length,
    /// Its body holds a byte that was not put there.
    Content,
}

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More is to come.
    More,
    /// It is complete; whether the server closes the connection now.
    Complete {
        /// `Connection: close`.
        closes: bool,
    },
}

/// The end of a body.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// After so many bytes.
    Bytes(u64),
    /// In chunks, with so many bytes of this one to come; 0: a line with the next one's length.
    Chunks { left: u64, last: bool },
}

/// Reads one answer from pieces of any length.
#[derive(Debug)]
pub struct Answer {
    /// The bytes of the body that it must have, each `FILLING`; None where anything is taken.
    expected: Option<u64>,
    head: Vec<u8>,
    body: Option<Body>,
    closes: bool,
    /// The bytes of the body so far.
    pub body_bytes: u64,
}

impl Answer {
    /// Waits for an answer with a body of so many bytes, or of any length and content.
    pub fn new(expected: Option<u64>) -> Self {
        Self { expected, head: Vec::new(), body: None, closes: false, body_bytes: 0 }
    }

    /// Takes the next bytes of the stream. Bytes after the end are wrong, for nothing else was asked for.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<Progress, Wrong> {
        if self.body.is_none() {
            // A head comes whole, as a rule, and is then read where it is.
            let known = self.head.len();
            let mut head = std::mem::take(&mut self.head);
            let part = &bytes[..bytes.len().min(LONGEST_HEAD)];
            if known > 0 {
                head.extend_from_slice(part);
            }
            let Some(length) = self.parse_head(if known > 0 { &head } else { part })? else {
                if known == 0 {
                    head.extend_from_slice(part);
                }
                self.head = head;
                return if self.head.len() >= LONGEST_HEAD { Err(Wrong::NotHttp) } else { Ok(Progress::More) };
            };
            bytes = &bytes[length - known..];
        }
        self.take_body(bytes)
    }

    /// Reads the head: its length, or None where it is not complete.
    fn parse_head(&mut self, head: &[u8]) -> Result<Option<usize>, Wrong> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(head).map_err(|_| Wrong::NotHttp)? else {
            return Ok(None);
        };
        if response.code != Some(200) {
            return Err(Wrong::Status);
        }
        self.closes = response.version == Some(0);
        let (mut given, mut chunked) = (None, false);
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                let bytes = number(value, 10)?;
                if given.is_some_and(|before| before != bytes) {
                    return Err(Wrong::NotHttp);
                }
                given = Some(bytes);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case("chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                self.closes = value.eq_ignore_ascii_case("close");
            }
        }
        // Chunks take precedence over a length (RFC 9112 section 6.3).
        self.body = Some(match given {
            _ if chunked => Body::Chunks { left: 0, last: false },
            Some(bytes) if self.expected.is_some_and(|expected| expected != bytes) => return Err(Wrong::Length),
            Some(bytes) => Body::Bytes(bytes),
            None => return Err(Wrong::NotHttp),
        });
        Ok(Some(length))
    }

    fn take_body(&mut self, bytes: &[u8]) -> Result<Progress, Wrong> {
        match self.body {
            Some(Body::Bytes(length)) => {
                self.body_bytes += bytes.len() as u64;
                if self.body_bytes > length {
                    return Err(Wrong::Length);
                }
                self.check_content(bytes)?;
                Ok(if self.body_bytes == length { self.complete() } else { Progress::More })
            }
            Some(Body::Chunks { left, last }) => self.take_chunks(bytes, left, last),
            None => Ok(Progress::More),
        }
    }

    /// Whether these bytes of the body are what was put there.
    fn check_content(&self, bytes: &[u8]) -> Result<(), Wrong> {
        if self.expected.is_some() && !bytes.chunks(FILLER_BYTES).all(|part| part == &FILLER[..part.len()]) {
            return Err(Wrong::Content);
        }
        Ok(())
    }

    fn take_chunks(&mut self, mut bytes: &[u8], mut left: u64, mut last: bool) -> Result<Progress, Wrong> {
        while !bytes.is_empty() {
            if left > 2 {
                let (part, rest) = bytes.split_at((left - 2).min(bytes.len() as u64) as usize);
                self.body_bytes += part.len() as u64;
                if self.expected.is_some_and(|expected| self.body_bytes > expected) {
                    return Err(Wrong::Length);
                }
                self.check_content(part)?;
                left -= part.len() as u64;
                bytes = rest;
            } else if left > 0 {
                // The end of line after a chunk.
                left -= 1;
                bytes = &bytes[1..];
            } else {
                self.head.push(bytes[0]);
                bytes = &bytes[1..];
                if self.head.ends_with(b"\r\n") {
                    if last && self.head.len() == 2 {
                        let is_whole = self.expected.is_none_or(|expected| self.body_bytes == expected);
                        return if is_whole && bytes.is_empty() { Ok(self.complete()) } else { Err(Wrong::Length) };
                    }
                    if !last {
                        let line = std::str::from_utf8(&self.head).map_err(|_| Wrong::NotHttp)?;
                        let digits = line.split(';').next().unwrap_or_default().trim();
                        let size = number(digits, 16)?;
                        last = size == 0;
                        left = if last { 0 } else { size.checked_add(2).ok_or(Wrong::NotHttp)? };
                    }
                    self.head.clear();
                } else if self.head.len() > LONGEST_HEAD {
                    return Err(Wrong::NotHttp);
                }
            }
        }
        self.body = Some(Body::Chunks { left, last });
        Ok(Progress::More)
    }

    fn complete(&self) -> Progress {
        Progress::Complete { closes: self.closes }
    }
}

/// A number of digits alone: no sign, as Rust would take one.
fn number(digits: &str, radix: u32) -> Result<u64, Wrong> {
    if digits.starts_with('+') {
        return Err(Wrong::NotHttp);
    }
    u64::from_str_radix(digits, radix).map_err(|_| Wrong::NotHttp)
}

/// A request for this path; `last` asks the server to close the connection after its answer.
pub fn request(host: &str, path: &str, last: bool) -> Vec<u8> {
    let close = if last { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: nicbench\r\n{close}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, expected: Option<u64>, step: usize) -> Result<(Progress, u64), Wrong> {
        let mut answer = Answer::new(expected);
        let mut progress = Progress::More;
        for piece in text.as_bytes().chunks(step) {
            progress = answer.take(piece)?;
        }
        Ok((progress, answer.body_bytes))
    }

    #[test]
    fn an_answer_is_whole_in_pieces_of_any_length() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nxxxxx";
        for step in 1..text.len() {
            assert_eq!(read(text, Some(5), step), Ok((Progress::Complete { closes: true }, 5)));
        }
    }

    #[test]
    fn chunks_are_counted_without_their_lengths() {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;name=v\r\nd\r\n0\r\nTrailer: a\r\n\r\n";
        for step in 1..text.len() {
            assert_eq!(read(text, None, step), Ok((Progress::Complete { closes: false }, 4)));
        }
    }

    #[test]
    fn chunks_are_compared_with_what_was_asked_for() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n";
        let ends = [
            ("2\r\nxx\r\n1\r\nx\r\n0\r\n\r\n", Ok((Progress::Complete { closes: false }, 3))),
            ("2\r\nxx\r\n0\r\n\r\n", Err(Wrong::Length)),
            ("4\r\nxxxx\r\n0\r\n\r\n", Err(Wrong::Length)),
            ("3\r\nxyx\r\n0\r\n\r\n", Err(Wrong::Content)),
            ("+3\r\nxxx\r\n0\r\n\r\n", Err(Wrong::NotHttp)),
        ];
        for (chunks, outcome) in ends {
            for step in [1, 7, 999] {
                assert_eq!(read(&format!("{head}{chunks}"), Some(3), step), outcome, "{chunks:?}");
            }
        }
    }

    #[test]
    fn two_lengths_that_differ_are_no_answer() {
        let of =
            |first, second| format!("HTTP/1.1 200 OK\r\nContent-Length: {first}\r\nContent-Length: {second}\r\n\r\n");
        assert_eq!(read(&of("1", "2"), None, 99), Err(Wrong::NotHttp));
        assert_eq!(read(&of("+1", "+1"), None, 99), Err(Wrong::NotHttp));
        assert_eq!(read(&of("1", "1"), None, 99), Ok((Progress::More, 0)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(read(&format!("{head}xyx"), Some(3), 7), Err(Wrong::Content));
        assert_eq!(read(&format!("{head}xxx"), Some(4), 7), Err(Wrong::Length));
        assert_eq!(read(&format!("{head}xxxx"), Some(3), 99), Err(Wrong::Length));
        assert_eq!(read(&format!("{head}xx"), Some(3), 9), Ok((Progress::More, 2)));
        assert_eq!(read("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", Some(0), 9), Err(Wrong::Status));
        assert_eq!(read("HTTP/1.1 200 OK\r\n\r\n", None, 9), Err(Wrong::NotHttp));
        assert_eq!(read("SSH-2.0-OpenSSH_9.2\r\n", None, 9), Err(Wrong::NotHttp));
    }
}
