//! The client: what it is asked, its threads, and what they have counted together.

pub mod connection;
mod hold;
mod outcomes;
pub mod schedule;
pub mod tally;
mod threads;
mod worker;

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use self::schedule::{Mix, Schedule};
pub use self::threads::run;

/// What is asked of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// A connection is due at each moment: it makes its exchanges and is closed.
    Connect,
    /// A request is due at each moment, on one of so many connections that stay open, in turn.
    Requests {
        /// Connections.
        connections: u64,
    },
    /// A connection is due at each moment, and stays. When all are open, each makes one more exchange within so long.
    Hold {
        /// The time over which these exchanges are spread.
        hold_ns: u64,
    },
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Object {
    /// The request, and the one that asks for the connection's end as well.
    pub request: Vec<u8>,
    /// The same, with `Connection: close`.
    pub last_request: Vec<u8>,
    /// The bytes of the answer's body, of which each must be right; None where anything is taken.
    pub expected: Option<u64>,
}

/// All that a client does.
pub struct Plan {
    /// What is asked of the connections.
    pub task: Task,
    /// The server's addresses, which connections take in turn.
    pub to: Vec<SocketAddr>,
    /// When.
    pub schedule: Schedule,
    /// When the sustain phase begins and ends.
    pub sustain_ns: (u64, u64),
    /// What is asked for.
    pub objects: Vec<Object>,
    /// Which of them, by turns.
    pub mix: Mix,
    /// Exchanges of each connection that is opened to be closed.
    pub exchanges: u32,
    /// Whether a connection is closed by a RST, not by the server's FIN.
    pub reset: bool,
    /// TLS, and the server's name there.
    pub tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// How long a connection may take, from connect() on; and the TLS session.
    pub connect_within_ns: u64,
    /// How long a whole answer may take, from the request on.
    pub answer_within_ns: u64,
    /// Threads.
    pub threads: u64,
}

impl Plan {
    /// The longest that what was started may take, with each of its steps within its limit, in nanoseconds.
    pub fn longest_ns(&self) -> u64 {
        let handshakes = 1 + u64::from(self.tls.is_some());
        let answers = if self.task == Task::Connect { u64::from(self.exchanges) } else { 1 };
        handshakes * self.connect_within_ns + answers * self.answer_within_ns
    }
}
