//! The numbers among the names in a folder such as /proc, without memory of its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Where `d_name` begins in a `linux_dirent64` (getdents64(2)).
const NAME_OFFSET: usize = 19;
/// Where `d_reclen` is.
const LENGTH_OFFSET: usize = 16;

/// Calls `each` with every number in `folder`, in the kernel's order. `buffer` is scratch.
pub fn each_number(folder: &File, buffer: &mut [u8], mut each: impl FnMut(u32)) -> io::Result<()> {
    // SAFETY: only moves the descriptor's own position.
    if unsafe { libc::lseek(folder.as_raw_fd(), 0, libc::SEEK_SET) } < 0 {
        return Err(io::Error::last_os_error());
    }
    loop {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`, which outlives the call.
        let count =
            unsafe { libc::syscall(libc::SYS_getdents64, folder.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
        match usize::try_from(count) {
            Err(_) => return Err(io::Error::last_os_error()),
            Ok(0) => return Ok(()),
            Ok(count) => numbers(&buffer[..count.min(buffer.len())], &mut each),
        }
    }
}

fn numbers(mut entries: &[u8], each: &mut impl FnMut(u32)) {
    while let Some(length) = entries.get(LENGTH_OFFSET..NAME_OFFSET - 1) {
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let Some(name) = entries.get(NAME_OFFSET..length) else { return };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        if let Some(number) = crate::text::number(name).and_then(|number| u32::try_from(number).ok()) {
            each(number);
        }
        entries = &entries[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_the_numbers_in_proc() {
        let mut found = Vec::new();
        let mut buffer = vec![0; 512];
        each_number(&File::open("/proc").unwrap(), &mut buffer, |pid| found.push(pid)).unwrap();
        assert!(found.contains(&std::process::id()));
    }

    #[test]
    fn broken_entries_end_the_list() {
        for bytes in [&[0u8; 40][..], &[255; 40], &[1; 18]] {
            numbers(bytes, &mut |_| ());
        }
    }
}
