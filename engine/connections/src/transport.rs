//! A connection's bytes, plain or through TLS, by a socket that never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;

/// A socket, and the TLS session on it if there is one.
pub struct Transport {
    socket: TcpStream,
    session: Option<Box<rustls::Connection>>,
    /// What is still to be sent, and how much of it is gone.
    waiting: Vec<u8>,
    gone: usize,
}

impl Transport {
    /// A socket that does not block, with a TLS session or without.
    pub fn new(socket: TcpStream, session: Option<rustls::Connection>) -> Self {
        Self { socket, session: session.map(Box::new), waiting: Vec::new(), gone: 0 }
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Whether it may hold bytes that the socket no longer has.
    pub fn buffers(&self) -> bool {
        self.session.is_some()
    }

    /// Puts a TLS session on the connection.
    pub fn secure(&mut self, session: rustls::Connection) {
        self.session = Some(Box::new(session));
    }

    /// Continues the handshake as far as it goes; whether it is done. An error of TLS has the kind `InvalidData`.
    pub fn shake(&mut self) -> io::Result<bool> {
        let Some(session) = &mut self.session else { return Ok(true) };
        while session.is_handshaking() {
            flush(session, &mut self.socket)?;
            match session.read_tls(&mut self.socket) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => process(session, &mut self.socket)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        flush(session, &mut self.socket)?;
        Ok(true)
    }

    /// Sends these bytes after those that still wait; what does not go now goes by `flush`.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            session.writer().write_all(bytes)?;
            flush(session, &mut self.socket)?;
            return Ok(());
        }
        self.waiting.extend_from_slice(bytes);
        self.flush().map(|_| ())
    }

    /// Sends what waits, as far as it goes; whether all is gone.
    pub fn flush(&mut self) -> io::Result<bool> {
        if let Some(session) = &mut self.session {
            return flush(session, &mut self.socket);
        }
        while self.gone < self.waiting.len() {
            match self.socket.write(&self.waiting[self.gone..]) {
                Ok(count) => self.gone += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        self.gone = 0;
        Ok(true)
    }

    /// Sends as much of `bytes` as goes now, after what waits: how much, or `WouldBlock`.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.flush()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let Some(session) = &mut self.session else { return self.socket.write(bytes) };
        let count = session.writer().write(bytes)?;
        flush(session, &mut self.socket)?;
        Ok(count)
    }

    /// Reads into `buffer`: 0 at the end of the stream, `WouldBlock` where nothing is there yet.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(buffer) };
        loop {
            match session.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Most servers end TLS by ending TCP: what is missing then shows in the answer's length.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            if session.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            process(session, &mut self.socket)?;
        }
    }
}

/// Takes what was read into the session; an alert of ours still goes out before the error is told.
fn process(session: &mut rustls::Connection, socket: &mut TcpStream) -> io::Result<()> {
    session.process_new_packets().map(|_| ()).map_err(|error| {
        let _ = session.write_tls(socket);
        io::Error::new(ErrorKind::InvalidData, error)
    })
}

/// Sends what the session has to send; whether all is gone.
fn flush(session: &mut rustls::Connection, socket: &mut TcpStream) -> io::Result<bool> {
    while session.wants_write() {
        match session.write_tls(socket) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
