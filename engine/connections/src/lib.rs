//! TCP connections by the clock, and what becomes of each: a client and a server of HTTP/1.1, with and without TLS.
//!
//! The client opens connections or sends requests when they are due, whether earlier ones were answered or not (an open
//! loop), and counts each as completed or as failed in one way. The server answers with objects of the size that a path
//! names; asked to, it breaks some of its answers. Both use the kernel's sockets.

pub mod cli;
pub mod client;
pub mod clock;
pub mod http;
pub mod nginx;
pub mod poll;
pub mod server;
pub mod tls;
pub mod transport;
#[cfg(feature = "xdp")]
pub mod xdp;

/// What an object is filled with, so that a client sees a byte that is not the server's.
pub const FILLING: u8 = b'x';

/// A block of what objects are filled with.
pub const FILLER_BYTES: usize = 64 * 1024;
/// It is written from and compared with, which takes a tenth of the time that single bytes take.
pub static FILLER: [u8; FILLER_BYTES] = [FILLING; FILLER_BYTES];

/// The path of an object of so many bytes.
pub fn object_path(bytes: u64) -> String {
    format!("/bytes/{bytes}")
}

/// Allows itself as many open files as the machine does, for every connection is one; how many.
pub fn raise_open_files() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let most = Some(1_048_576);
    let whole = Rlimit { current: most, maximum: most };
    // Only root may raise the hard limit; anybody may raise the soft one to it.
    if setrlimit(Resource::Nofile, whole).is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}
