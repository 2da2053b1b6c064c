//! Memory for requests: one mapping for each worker, in huge pages where the kernel grants them, cut into equal
//! buffers.
//!
//! A buffer has one owner at a time: it moves into a request and comes back with its completion.

use std::io;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::content::Holds;

/// Buffers begin at multiples of this, which suits every file system's direct I/O.
pub const ALIGNMENT: usize = 4096;
/// A huge page.
const HUGE: usize = 2 << 20;

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is plain memory without ties to a thread; only `Buffer`s, whose ranges are disjoint, touch it.
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared `Mapping` gives no access to its memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(bytes: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping overlaps nothing.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start: NonNull<u8> = NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mmap gave address 0"))?;
        // SAFETY: the range is the mapping just made. It is advice: a kernel that has no huge pages says no, which is
        // no fault.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and the last buffer of it is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A part of a mapping that nobody else has.
#[derive(Debug)]
pub struct Buffer {
    mapping: Arc<Mapping>,
    offset: usize,
    bytes: usize,
    /// What its owner knows of its content.
    pub holds: Option<Holds>,
}

impl Buffer {
    /// So many buffers of at least so many bytes, every page of them touched.
    pub fn several(count: usize, bytes: usize) -> io::Result<Vec<Self>> {
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        let total = bytes.checked_mul(count).and_then(|total| total.checked_add(HUGE));
        let mapping = Mapping::new(total.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?)?;
        // Huge pages begin at their own multiples.
        let first = mapping.start.as_ptr().align_offset(HUGE);
        let mapping = Arc::new(mapping);
        let mut buffers: Vec<Self> = (0..count)
            .map(|index| Self { mapping: Arc::clone(&mapping), offset: first + index * bytes, bytes, holds: None })
            .collect();
        buffers.iter_mut().for_each(|buffer| buffer.as_mut_slice().fill(0xa5));
        Ok(buffers)
    }

    /// Where it begins, for the kernel.
    pub fn pointer(&self) -> *mut u8 {
        // SAFETY: `several` laid the range within the mapping.
        unsafe { self.mapping.start.as_ptr().add(self.offset) }
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the range is mapped, initialised (zero pages), and this is its only owner, of which no `&mut` lives.
        unsafe { slice::from_raw_parts(self.pointer(), self.bytes) }
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` says that nobody else looks.
        unsafe { slice::from_raw_parts_mut(self.pointer(), self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_apart_and_outlive_one_another() {
        let mut buffers = Buffer::several(3, 5000).unwrap();
        for (index, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!((buffer.pointer() as usize % ALIGNMENT, buffer.len()), (0, 8192));
            buffer.as_mut_slice().fill(index as u8);
        }
        let last = buffers.pop().unwrap();
        assert!(buffers.iter().enumerate().all(|(index, buffer)| buffer.as_slice().iter().all(|b| *b == index as u8)));
        drop(buffers);
        assert!(last.as_slice().iter().all(|byte| *byte == 2));
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        assert!(Buffer::several(usize::MAX / 8192, 8192).is_err());
    }
}
