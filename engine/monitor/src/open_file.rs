//! A file that stays open and is read again from its beginning, into a buffer that all files share.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What is read into; it grows until the largest file fits, and then no more.
#[derive(Debug)]
pub struct Buffer {
    pub bytes: Vec<u8>,
}

/// No file of the kernel that is read here is longer, by far.
const LONGEST_BYTES: usize = 64 << 20;

impl Default for Buffer {
    fn default() -> Self {
        Self { bytes: vec![0; 16 << 10] }
    }
}

/// A file that stays open and is read again for each sample.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
}

impl OpenFile {
    /// Opens it; nothing is read yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(|file| Self { file })
    }

    /// The whole file as it is now.
    pub fn read<'b>(&self, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let mut length = 0;
        loop {
            if length == buffer.bytes.len() {
                if length >= LONGEST_BYTES {
                    return Err(io::Error::from(io::ErrorKind::FileTooLarge));
                }
                buffer.bytes.resize(2 * length, 0);
            }
            // A file of the kernel may give less than is asked for before its end.
            match self.file.read_at(&mut buffer.bytes[length..], length as u64) {
                Ok(0) => return Ok(&buffer.bytes[..length]),
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// A file of one value: one call, for it comes whole.
    pub fn read_value<'b>(&self, buffer: &'b mut Buffer) -> io::Result<&'b [u8]> {
        let count = self.file.read_at(&mut buffer.bytes, 0)?;
        Ok(&buffer.bytes[..count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole_and_again() {
        let path = std::env::temp_dir().join(format!("nicbench-kept-{}", std::process::id()));
        std::fs::write(&path, vec![b'x'; 100_000]).unwrap();
        let (kept, mut buffer) = (OpenFile::open(&path).unwrap(), Buffer::default());
        assert_eq!(kept.read(&mut buffer).unwrap().len(), 100_000);
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(kept.read(&mut buffer).unwrap(), b"short");
        std::fs::remove_file(&path).unwrap();
    }
}
