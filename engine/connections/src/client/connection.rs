//! One connection of the client: from connect() over a TLS session to an answer.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::tally::Failure;
use crate::http::{Answer, Progress, Wrong};
use crate::transport::Transport;

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its SYN is out.
    Connecting,
    /// The TLS handshake runs.
    Shaking,
    /// Nothing is asked.
    Idle,
    /// An answer is due.
    Waiting,
    /// It got all that it asked for, and waits for the server to close it.
    Closing,
}

impl State {
    /// Whether something is still to come of it.
    pub fn is_unfinished(self) -> bool {
        matches!(self, Self::Connecting | Self::Shaking | Self::Waiting)
    }
}

/// A request that waits for its answer.
pub struct Asked {
    /// When it was due.
    pub due_ns: u64,
    /// Whether that was in the sustain phase.
    pub measured: bool,
    /// Whether it is the first of its connection, or due by itself: later ones are sent when the one before is answered.
    pub is_first: bool,
    /// Whether the first byte has come.
    pub begun: bool,
    /// The answer so far.
    pub answer: Answer,
}

/// What came of driving a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits.
    Nothing,
    /// TCP, and TLS if asked for, stand.
    Ready,
    /// The answer is complete; whether the server closes the connection now.
    Answered {
        /// `Connection: close`.
        closes: bool,
    },
    /// It failed.
    Failed(Failure),
    /// The server closed it while nothing was asked.
    Ended,
}

/// What driving it tells at once: moments, and bytes of a body.
pub trait Observer {
    /// It took so long to connect.
    fn connected(&mut self, from_ns: u64);
    /// The TLS session took so long.
    fn secured(&mut self, from_ns: u64);
    /// The first byte of the answer to this request came.
    fn first_byte(&mut self, asked: &Asked);
    /// Bytes of a body came.
    fn body(&mut self, bytes: u64);
}

/// A connection.
pub struct Connection {
    /// What it is doing.
    pub state: State,
    /// When it failed at the latest.
    pub deadline_ns: u64,
    /// When its state began.
    pub since_ns: u64,
    /// What it is for: the number of its job, or its lane.
    pub number: u64,
    /// Exchanges that are still to be made.
    pub left: u32,
    /// What it waits for.
    pub asked: Option<Asked>,
    transport: Transport,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Connection {
    /// Begins to connect. A failure at once is that of the client, or of its routes.
    pub fn open(
        to: SocketAddr,
        tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
        now_ns: u64,
        number: u64,
    ) -> Result<Self, Failure> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).map_err(|_| Failure::NoFiles)?;
        // A request is one write after an answer; the flights of a handshake are several, and must not wait.
        if tls.is_some() {
            let _ = sockopt::set_tcp_nodelay(&socket, true);
        }
        match connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(Errno::ADDRNOTAVAIL | Errno::AGAIN) => return Err(Failure::NoPorts),
            Err(Errno::NOBUFS | Errno::NOMEM) => return Err(Failure::NoFiles),
            Err(Errno::CONNREFUSED) => return Err(Failure::Refused),
            Err(_) => return Err(Failure::Unreachable),
        }
        Ok(Self {
            state: State::Connecting,
            deadline_ns: u64::MAX,
            since_ns: now_ns,
            number,
            left: 1,
            asked: None,
            transport: Transport::new(TcpStream::from(socket), None),
            tls,
        })
    }

    /// Its socket.
    pub fn socket(&self) -> &TcpStream {
        self.transport.socket()
    }

    /// Closes it by a RST, which leaves no port behind that waits.
    pub fn reset_when_closed(&self) {
        let _ = sockopt::set_socket_linger(self.socket(), Some(std::time::Duration::ZERO));
    }

    /// Sends a request.
    pub fn ask(&mut self, bytes: &[u8], asked: Asked) -> Result<(), Failure> {
        self.asked = Some(asked);
        self.state = State::Waiting;
        self.transport.send(bytes).map_err(|error| failure_of(&error, Failure::Reset))
    }

    /// How it fails where its deadline passes.
    pub fn timeout(&self) -> Failure {
        match self.state {
            State::Connecting => Failure::ConnectTimeout,
            State::Shaking => Failure::TlsTimeout,
            _ => Failure::ResponseTimeout,
        }
    }

    /// Goes on as far as it goes without waiting.
    pub fn drive(&mut self, buffer: &mut [u8], observer: &mut impl Observer) -> Step {
        if self.state == State::Connecting {
            match self.try_connected() {
                Ok(true) => {
                    observer.connected(self.since_ns);
                    if let Err(failure) = self.begin_session() {
                        return Step::Failed(failure);
                    }
                    if self.state == State::Idle {
                        return Step::Ready;
                    }
                }
                Ok(false) => return Step::Nothing,
                Err(failure) => return Step::Failed(failure),
            }
        }
        if self.state == State::Shaking {
            return match self.transport.shake() {
                Ok(true) => {
                    observer.secured(self.since_ns);
                    self.state = State::Idle;
                    Step::Ready
                }
                Ok(false) => Step::Nothing,
                Err(error) => Step::Failed(failure_of(&error, Failure::Tls)),
            };
        }
        self.read(buffer, observer)
    }

    /// Whether TCP stands by now. A socket becomes writable by that, or has an error.
    fn try_connected(&self) -> Result<bool, Failure> {
        if rustix::net::getpeername(self.socket()).is_ok() {
            return Ok(true);
        }
        match sockopt::socket_error(self.socket()) {
            Ok(Ok(())) => Ok(false),
            Ok(Err(Errno::CONNREFUSED)) => Err(Failure::Refused),
            Ok(Err(Errno::TIMEDOUT)) => Err(Failure::ConnectTimeout),
            Ok(Err(Errno::CONNRESET)) => Err(Failure::Reset),
            Ok(Err(_)) | Err(_) => Err(Failure::Unreachable),
        }
    }

    fn begin_session(&mut self) -> Result<(), Failure> {
        self.state = State::Idle;
        if let Some((config, name)) = self.tls.take() {
            let session = rustls::ClientConnection::new(config, name).map_err(|_| Failure::Tls)?;
            self.transport.secure(session.into());
            self.state = State::Shaking;
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8], observer: &mut impl Observer) -> Step {
        if let Err(error) = self.transport.flush() {
            return self.broken(&error);
        }
        loop {
            let count = match self.transport.read(buffer) {
                Ok(0) if self.state == State::Waiting => return Step::Failed(Failure::Short),
                Ok(0) => return Step::Ended,
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Nothing,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return self.broken(&error),
            };
            let Some(asked) = &mut self.asked else {
                return if self.state == State::Closing { Step::Ended } else { Step::Failed(Failure::NotHttp) };
            };
            if !asked.begun {
                asked.begun = true;
                observer.first_byte(asked);
            }
            let before = asked.answer.body_bytes;
            let progress = asked.answer.take(&buffer[..count]);
            observer.body(asked.answer.body_bytes - before);
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Complete { closes }) => return Step::Answered { closes },
                Err(wrong) => return Step::Failed(wrong.into()),
            }
        }
    }

    fn broken(&self, error: &io::Error) -> Step {
        if self.state == State::Waiting { Step::Failed(failure_of(error, Failure::Reset)) } else { Step::Ended }
    }
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::NotHttp => Self::NotHttp,
            Wrong::Status => Self::Status,
            Wrong::Length => Self::Length,
            Wrong::Content => Self::Content,
        }
    }
}

fn failure_of(error: &io::Error, otherwise: Failure) -> Failure {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Failure::Reset,
        ErrorKind::InvalidData => Failure::Tls,
        _ => otherwise,
    }
}
