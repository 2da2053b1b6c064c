//! Files: closing with the answer that it gives, the room that is left, and a lock.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Closes, and says how that went: over a network it is here that a server may refuse what was written.
pub fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor was owned, and is given up here. It is closed even after an error (close(2)).
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What a file system has left for this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub bytes: u64,
    /// `None` where it does not count them.
    pub files: Option<u64>,
}

/// Of the file system that holds `path` (statvfs(3)).
pub fn room(path: &Path) -> io::Result<Room> {
    let path = c_path(path)?;
    // SAFETY: an all-zero statvfs is valid; the call fills it and reads a text that ends with 0.
    let (status, found) = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &raw mut found), found)
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let files = (found.f_files > 0).then_some(found.f_favail);
    Ok(Room { bytes: found.f_bavail.saturating_mul(found.f_frsize), files })
}

/// Takes a file or directory until it is closed, alone or with others that share it; false where somebody else has it
/// otherwise. File systems without such locks (flock(2)) give it to everybody.
pub fn lock(file: &File, alone: bool) -> bool {
    let kind = if alone { libc::LOCK_EX } else { libc::LOCK_SH };
    // SAFETY: the descriptor is open for as long as the borrow.
    let status = unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) };
    status == 0 || io::Error::last_os_error().kind() != io::ErrorKind::WouldBlock
}

/// Waits until everything of the file system that holds `file` is on its disk (syncfs(2)).
pub fn sync_file_system(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as the borrow.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// As system calls want it.
pub fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_somewhere_and_none_nowhere() {
        assert!(room(Path::new("/")).is_ok());
        assert_eq!(room(Path::new("/no/such/place")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_locked_once() {
        let path = std::env::temp_dir().join(format!("nicbench-lock-{}", std::process::id()));
        let (first, second) = (File::create(&path).unwrap(), File::open(&path).unwrap());
        assert!(lock(&first, true) && !lock(&second, false));
        drop(first);
        assert!(lock(&second, false) && lock(&File::open(&path).unwrap(), false));
        std::fs::remove_file(path).unwrap();
    }
}
