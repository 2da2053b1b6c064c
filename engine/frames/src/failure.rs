//! A frame that could not be read or written: why, in words that name the file and the next step.

use std::io;
use std::path::Path;

use nicbench_protocol::{FailureKind, FramesFailure};

use crate::content::{Found, Mismatch};

/// The step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    Opening,
    Reading,
    Writing,
    Syncing,
    Closing,
}

impl Doing {
    fn word(self) -> &'static str {
        match self {
            Self::Opening => "open",
            Self::Reading => "read",
            Self::Writing => "write",
            Self::Syncing => "sync",
            Self::Closing => "close",
        }
    }
}

/// A frame in its file.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub frame: u64,
    pub path: &'a Path,
    pub direct: bool,
}

impl Place<'_> {
    fn failure(&self, kind: FailureKind, message: String, next: String) -> FramesFailure {
        FramesFailure { kind, frame: Some(self.frame), file: self.path.display().to_string(), message, next }
    }

    /// The failure of a step that the system refused.
    pub fn refusal(&self, doing: Doing, error: &io::Error) -> FramesFailure {
        let kind = kind_of(error, self.direct);
        let message = format!("cannot {} frame {}, {}: {error}", doing.word(), self.frame, self.path.display());
        self.failure(kind, message, self.next_step(kind))
    }

    fn next_step(&self, kind: FailureKind) -> String {
        let directory = self.path.parent().unwrap_or(self.path);
        let shown = directory.display();
        match kind {
            FailureKind::DiskFull => {
                format!("make room (df {shown}; `nicbench-frames clean {shown}` removes what it wrote), or ask for fewer frames")
            }
            FailureKind::Vanished if directory.is_dir() => {
                "prepare the frames again: the directory is there, this file is not; or somebody removes files meanwhile".into()
            }
            FailureKind::Vanished => format!("look at the mount ({shown} is gone) and at its server, then begin again"),
            FailureKind::Permission => format!("give this user the right to it (ls -l {shown}), or mount it for writing"),
            FailureKind::Unsupported => "ask without `direct`, or use a file system that has direct I/O".into(),
            _ => format!("look at the kernel's messages (dmesg) and at what {shown} stands on"),
        }
    }

    /// The failure of a file that ends before its frame does.
    pub fn too_short(&self, has_bytes: u64, wanted_bytes: u64) -> FramesFailure {
        let message = format!(
            "frame {}, {}, is too short: it ends after {has_bytes} of {wanted_bytes} bytes",
            self.frame,
            self.path.display()
        );
        let next = "prepare the frames again, and look whether the preparation was complete and somebody cuts files";
        self.failure(FailureKind::ShortRead, message, next.into())
    }

    /// The failure of a frame that is not what was written.
    pub fn wrong(&self, mismatch: Mismatch) -> FramesFailure {
        let found = match mismatch.found {
            Found::Zeros => "there are zeros".to_owned(),
            Found::Other { seed, frame, offset } => {
                format!("there is the block of frame {frame}, offset {offset}, seed {seed}")
            }
            Found::Changed { at } => format!("the byte at offset {at} was changed"),
            Found::Foreign => "there is something that nicbench did not write".to_owned(),
        };
        let message = format!(
            "frame {}, {}, has wrong content: in its block at offset {} {found}",
            self.frame,
            self.path.display(),
            mismatch.offset
        );
        let next = "read it again: where it stays wrong the storage or the way to it damages data (or somebody wrote into the file)";
        self.failure(FailureKind::WrongContent, message, next.into())
    }
}

fn kind_of(error: &io::Error, direct: bool) -> FailureKind {
    match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG) => FailureKind::DiskFull,
        Some(
            libc::ENOENT
            | libc::ENOTDIR
            | libc::ESTALE
            | libc::ENOTCONN
            | libc::ENODEV
            | libc::ENXIO
            | libc::EHOSTDOWN
            | libc::EHOSTUNREACH
            | libc::ETIMEDOUT,
        ) => FailureKind::Vanished,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => FailureKind::Permission,
        Some(libc::EOPNOTSUPP) => FailureKind::Unsupported,
        Some(libc::EINVAL) if direct => FailureKind::Unsupported,
        _ => FailureKind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_file_and_what_to_do() {
        let place = Place { frame: 7, path: Path::new("/no/such/frame_7"), direct: false };
        for (code, kind, word) in [
            (libc::ENOSPC, FailureKind::DiskFull, "clean /no/such"),
            (libc::EDQUOT, FailureKind::DiskFull, "fewer frames"),
            (libc::ESTALE, FailureKind::Vanished, "mount"),
            (libc::EROFS, FailureKind::Permission, "right"),
            (libc::EIO, FailureKind::Io, "dmesg"),
        ] {
            let failure = place.refusal(Doing::Writing, &io::Error::from_raw_os_error(code));
            assert_eq!((failure.kind, failure.frame), (kind, Some(7)));
            assert!(failure.message.contains("write frame 7, /no/such/frame_7"), "{}", failure.message);
            assert!(failure.next.contains(word), "{}", failure.next);
        }
    }

    #[test]
    fn an_invalid_argument_is_the_fault_of_direct_io_only_where_that_was_asked_for() {
        let error = io::Error::from_raw_os_error(libc::EINVAL);
        assert_eq!((kind_of(&error, true), kind_of(&error, false)), (FailureKind::Unsupported, FailureKind::Io));
    }
}
