//! An array map of the kernel as memory of this process (BPF_F_MMAPABLE).

use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::os::fd::RawFd;
use std::ptr::null_mut;

/// A value that programs in the kernel and this process share.
///
/// # Safety
/// The type is `repr(C)`, holds integers only, and every pattern of bits is a value of it.
pub unsafe trait Plain: Copy {}

// SAFETY: integers.
unsafe impl Plain for u64 {}
// SAFETY: integers.
unsafe impl Plain for [u8; 16] {}
// SAFETY: integers.
unsafe impl Plain for [u8; 64] {}

/// The entries of an array map. Programs may write while this process reads: each access copies whole entries, and
/// what belongs together is written by one side only.
#[derive(Debug)]
pub struct Area<T: Plain> {
    start: *mut T,
    entries: usize,
    bytes: usize,
    _values: PhantomData<T>,
}

// SAFETY: the memory belongs to the process, not to a thread; `&self` methods only read.
unsafe impl<T: Plain> Send for Area<T> {}

impl<T: Plain> Area<T> {
    /// Maps the first `entries` of the map.
    pub fn new(map: RawFd, entries: usize) -> io::Result<Self> {
        // The kernel gives each entry a multiple of 8 bytes.
        const { assert!(size_of::<T>() % 8 == 0) };
        let page = 4096;
        let bytes = (entries.max(1) * size_of::<T>()).next_multiple_of(page);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of a descriptor; nothing that exists is replaced.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, libc::MAP_SHARED, map, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { start: start.cast(), entries, bytes, _values: PhantomData })
    }

    pub fn len(&self) -> usize {
        self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// A copy of one entry.
    pub fn get(&self, index: usize) -> T {
        assert!(index < self.entries);
        // SAFETY: within the mapping, and every pattern of bits is a value.
        unsafe { self.start.add(index).read_volatile() }
    }

    /// Writes one entry.
    pub fn set(&mut self, index: usize, value: T) {
        assert!(index < self.entries);
        // SAFETY: within the mapping.
        unsafe { self.start.add(index).write_volatile(value) };
    }

    /// Copies of many entries.
    pub fn copy(&self, range: Range<usize>) -> Vec<T> {
        assert!(range.start <= range.end && range.end <= self.entries);
        let mut values = Vec::with_capacity(range.len());
        // SAFETY: within the mapping, every pattern of bits is a value, and there is room for as many.
        unsafe {
            std::ptr::copy_nonoverlapping(self.start.add(range.start), values.as_mut_ptr(), range.len());
            values.set_len(range.len());
        }
        values
    }

    /// Writes many entries, the first at `first`.
    pub fn write(&mut self, first: usize, values: &[T]) {
        assert!(first + values.len() <= self.entries);
        // SAFETY: within the mapping, which no reference of Rust points into.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.start.add(first), values.len()) };
    }

    /// Makes all bytes of the entries zero.
    pub fn clear(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.entries);
        // SAFETY: within the mapping, and zero is a value.
        unsafe { std::ptr::write_bytes(self.start.add(range.start), 0, range.len()) };
    }
}

impl<T: Plain> Drop for Area<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and unmapped once.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
