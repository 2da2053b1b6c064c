//! Several requests at a time by the kernel's own queue (io_uring(7), Linux 5.6 and newer; 5.11 to wait with an end).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, opcode, squeue};

use super::clock::monotonic_ns;
use super::file::c_path;
use crate::requests::{Answer, Completion, Request, Requests, Transfer};

/// The kernel was given these: they stay where they are until it has answered.
enum Held {
    Open(#[expect(dead_code, reason = "the kernel reads the path")] std::ffi::CString),
    Move(Transfer),
    Sync(#[expect(dead_code, reason = "open until the kernel is done")] std::sync::Arc<File>),
    Close,
}

/// Does several requests at a time by the kernel's queue.
pub struct Uring {
    ring: IoUring,
    /// By slot, which is the kernel's name of a request.
    held: Vec<Option<(u64, Held)>>,
    in_flight: usize,
    /// Where requests were asked of which the kernel was not told yet.
    unsent: bool,
}

impl Uring {
    /// For so many transfers at a time, and as many frames that are opened, synced or closed meanwhile; the error says
    /// why there is no such queue here.
    pub fn new(depth: u32) -> io::Result<Self> {
        let entries = 2 * depth;
        let ring = IoUring::new(entries.next_power_of_two())?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        let needed = [opcode::OpenAt::CODE, opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE];
        let is_known = |code: &u8| probe.is_supported(*code);
        if !needed.iter().chain(&[opcode::Close::CODE]).all(is_known) || !ring.params().is_feature_ext_arg() {
            return Err(io::Error::other("io_uring of this kernel is too old (Linux 5.11 is needed)"));
        }
        Ok(Self { ring, held: (0..entries).map(|_| None).collect(), in_flight: 0, unsent: false })
    }

    fn slot(&self) -> io::Result<usize> {
        self.held.iter().position(Option::is_none).ok_or_else(|| io::Error::other("more requests than the queue takes"))
    }

    fn push(&mut self, token: u64, slot: usize, entry: squeue::Entry, held: Held) -> io::Result<()> {
        self.held[slot] = Some((token, held));
        // SAFETY: what the entry points to (a path, a buffer's mapping) is on the heap or mapped, is owned by
        // `held[slot]` now, and leaves it only with the kernel's answer; `drop` waits for all of them.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        if pushed.is_err() {
            self.held[slot] = None;
            return Err(io::Error::other("the submission queue is full"));
        }
        self.in_flight += 1;
        self.unsent = true;
        Ok(())
    }

    /// What the kernel has answered, if anything.
    fn reap(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let at_ns = monotonic_ns();
        let (token, held) = self.held.get_mut(entry.user_data() as usize)?.take()?;
        self.in_flight -= 1;
        let value = entry.result();
        let result = if value < 0 { Err(io::Error::from_raw_os_error(-value)) } else { Ok(value) };
        let answer = match held {
            // SAFETY: the kernel has just opened this descriptor, and nobody else was told of it.
            Held::Open(_) => Answer::Opened(result.map(|descriptor| unsafe { File::from_raw_fd(descriptor) })),
            Held::Move(transfer) => Answer::Moved(result.map(|moved| moved as usize), transfer),
            Held::Sync(_) => Answer::Synced(result.map(drop)),
            Held::Close => Answer::Closed(result.map(drop)),
        };
        Some(Completion { token, at_ns, answer })
    }

    /// Tells the kernel of new requests, and waits for an answer of it.
    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.unsent = false;
        let waited = match until_ns {
            None => self.ring.submit_and_wait(1),
            Some(until) => {
                let left = until.saturating_sub(monotonic_ns());
                let time = Timespec::new().sec(left / 1_000_000_000).nsec((left % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match waited {
            Ok(_) => Ok(()),
            // Time over, a signal, or answers to be taken first: the caller looks again.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Where a transfer's bytes begin; a range that leaves its buffer is a fault of ours.
fn within(transfer: &Transfer) -> *mut u8 {
    let fits = transfer.from.checked_add(transfer.length).is_some_and(|end| end <= transfer.buffer.len());
    assert!(fits, "a request leaves its buffer");
    // SAFETY: just checked.
    unsafe { transfer.buffer.pointer().add(transfer.from) }
}

impl Requests for Uring {
    fn submit(&mut self, token: u64, request: Request) -> io::Result<()> {
        let slot = self.slot()?;
        let (entry, held) = match request {
            Request::Open { path, mode } => {
                let path = c_path(&path)?;
                let open = opcode::OpenAt::new(Fd(libc::AT_FDCWD), path.as_ptr());
                (open.flags(mode.flags()).mode(0o666).build(), Held::Open(path))
            }
            Request::Read(transfer) => {
                let start = within(&transfer);
                let read = opcode::Read::new(Fd(transfer.file.as_raw_fd()), start, transfer.length as u32);
                (read.offset(transfer.offset).build(), Held::Move(transfer))
            }
            Request::Write(transfer) => {
                let start = within(&transfer).cast_const();
                let write = opcode::Write::new(Fd(transfer.file.as_raw_fd()), start, transfer.length as u32);
                (write.offset(transfer.offset).build(), Held::Move(transfer))
            }
            Request::Sync { file } => (opcode::Fsync::new(Fd(file.as_raw_fd())).build(), Held::Sync(file)),
            Request::Close { file } => (opcode::Close::new(Fd(file.into_raw_fd())).build(), Held::Close),
        };
        self.push(token, slot, entry, held)
    }

    fn next(&mut self, until_ns: Option<u64>) -> io::Result<Option<Completion>> {
        if self.unsent {
            self.unsent = false;
            self.ring.submit()?;
        }
        loop {
            if let Some(done) = self.reap() {
                return Ok(Some(done));
            }
            if self.in_flight == 0 || until_ns.is_some_and(|until| monotonic_ns() >= until) {
                return Ok(None);
            }
            self.wait(until_ns)?;
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        // The kernel may still write into buffers: they must not be freed before it has answered.
        while self.in_flight > 0 {
            if self.next(None).is_err() {
                // Never seen. Leaking them is safe, freeing them is not.
                std::mem::forget(std::mem::take(&mut self.held));
                return;
            }
        }
    }
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Uring").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}
