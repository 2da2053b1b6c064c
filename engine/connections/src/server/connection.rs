//! One connection of the server: a request at a time, and its answer.

use std::io::{self, ErrorKind};

use crate::transport::Transport;
use crate::{FILLER, FILLER_BYTES, FILLING};

const LONGEST_HEAD: usize = 8 * 1024;

/// How an answer is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// By a RST in its middle.
    Reset,
    /// By a FIN before its end.
    Short,
    /// Its status is 503.
    Status,
    /// A byte of its body is another.
    Content,
}

/// A request: how many bytes it asks for, and whether the connection ends with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes of the body; None where there is no such path.
    pub bytes: Option<u64>,
    /// `Connection: close`.
    pub last: bool,
}

/// What became of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits for bytes or for room.
    Waits,
    /// A request is complete.
    Asked(Request),
    /// It is over.
    Over,
}

/// A connection.
pub struct Connection {
    transport: Transport,
    head: Vec<u8>,
    /// What is still to be sent of the body.
    left: u64,
    /// Whether an answer is on its way, and it ends the connection; and by a RST.
    answering: bool,
    ends: bool,
    reset: bool,
    /// Whether an answer waits for its time.
    pub delayed: bool,
}

impl Connection {
    /// A connection that was accepted.
    pub fn new(transport: Transport) -> Self {
        Self { transport, head: Vec::new(), left: 0, answering: false, ends: false, reset: false, delayed: false }
    }

    /// Goes on as far as it goes without waiting.
    pub fn drive(&mut self, buffer: &mut [u8]) -> Step {
        match self.try_drive(buffer) {
            Ok(step) => step,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Step::Waits,
            Err(_) => Step::Over,
        }
    }

    fn try_drive(&mut self, buffer: &mut [u8]) -> io::Result<Step> {
        if !self.transport.shake()? || self.delayed {
            return Ok(Step::Waits);
        }
        if self.answering {
            return self.send_body();
        }
        loop {
            match parse(&self.head) {
                Ok(Some((length, request))) => {
                    // What follows is a request that came before its turn; it stays.
                    self.head.drain(..length);
                    return Ok(Step::Asked(request));
                }
                Ok(None) if self.head.len() < LONGEST_HEAD => {}
                _ => return Ok(Step::Over),
            }
            let count = self.transport.read(buffer)?;
            if count == 0 {
                return Ok(Step::Over);
            }
            self.head.extend_from_slice(&buffer[..count]);
        }
    }

    /// Begins the answer, and sends as much as goes.
    pub fn answer(&mut self, request: Request, broken: Option<Broken>) -> Step {
        let bytes = request.bytes.unwrap_or(0);
        let status = match (request.bytes, broken) {
            (None, _) => "404 Not Found",
            (_, Some(Broken::Status)) => "503 Service Unavailable",
            _ => "200 OK",
        };
        let close = if request.last { "Connection: close\r\n" } else { "" };
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {bytes}\r\n{close}\r\n").into_bytes();
        self.left = bytes;
        self.ends = request.last;
        self.answering = true;
        match broken {
            Some(Broken::Content) if bytes > 0 => {
                head.push(FILLING ^ 0x20);
                self.left -= 1;
            }
            Some(Broken::Reset | Broken::Short) => {
                self.left /= 2;
                // Of an empty body not even the head is whole.
                if bytes == 0 {
                    head.truncate(head.len() - 2);
                }
                self.ends = true;
                self.reset = broken == Some(Broken::Reset);
            }
            _ => {}
        }
        match self.transport.send(&head).and_then(|()| self.send_body()) {
            Ok(step) => step,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Step::Waits,
            Err(_) => Step::Over,
        }
    }

    fn send_body(&mut self) -> io::Result<Step> {
        while self.left > 0 {
            let part = self.left.min(FILLER_BYTES as u64) as usize;
            self.left -= self.transport.write(&FILLER[..part])? as u64;
        }
        if !self.transport.flush()? {
            return Ok(Step::Waits);
        }
        self.answering = false;
        if !self.ends {
            return Ok(Step::Waits);
        }
        if self.reset {
            let _ = rustix::net::sockopt::set_socket_linger(self.transport.socket(), Some(std::time::Duration::ZERO));
        }
        Ok(Step::Over)
    }

    /// Whether another request may be here already, of which no event tells.
    pub fn may_have_more(&self) -> bool {
        !self.answering && !self.delayed && (!self.head.is_empty() || self.transport.buffers())
    }
}

/// Reads a request's head: its length and what it asks for; None where it is not complete.
fn parse(head: &[u8]) -> Result<Option<(usize, Request)>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = request.parse(head)? else { return Ok(None) };
    let last = request
        .headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case("connection") && header.value.eq_ignore_ascii_case(b"close"));
    let path = request.path.unwrap_or_default();
    let bytes = path.strip_prefix("/bytes/").and_then(|number| number.parse().ok()).filter(|&bytes| bytes <= 1 << 30);
    Ok(Some((length, Request { bytes, last })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_object_and_whether_it_is_the_last() {
        let asked = crate::http::request("a", &crate::object_path(1024), true);
        assert_eq!(parse(&asked), Ok(Some((asked.len(), Request { bytes: Some(1024), last: true }))));
        assert_eq!(parse(&asked[..20]), Ok(None));
        let other = crate::http::request("a", "/elsewhere", false);
        assert_eq!(parse(&other), Ok(Some((other.len(), Request { bytes: None, last: false }))));
    }
}
