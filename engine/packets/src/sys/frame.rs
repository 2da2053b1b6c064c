//! A frame's bytes in the memory of the port that owns them.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

/// A view of one frame. Only ports make them; it is valid from `allocate` or `receive` until `send` accepts it or
/// `free` returns it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    data: *mut u8,
    length: u32,
    /// 1 where the buffer holds the constant bytes that its allocation named.
    prefilled: u32,
    handle: *mut c_void,
}

// SAFETY: a frame's bytes belong to whoever has the frame, on whatever thread; ports that cannot take a frame back from
// another thread are not `Send` themselves.
unsafe impl Send for Frame {}

impl Frame {
    /// A slot that no port has filled yet.
    pub const fn empty() -> Self {
        Self { data: NonNull::dangling().as_ptr(), length: 0, prefilled: 0, handle: null_mut() }
    }

    /// # Safety
    /// `data` must point to `length` readable and writable bytes that nobody else touches until the frame is given back
    /// to its port.
    pub const unsafe fn from_raw(data: *mut u8, length: u32, handle: *mut c_void) -> Self {
        Self { data, length, prefilled: 0, handle }
    }

    /// The pointer by which the port knows the buffer.
    pub const fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Whether the buffer still holds the constant bytes that its allocation named.
    #[inline]
    pub const fn is_prefilled(&self) -> bool {
        self.prefilled != 0
    }

    /// The same frame, whose buffer holds the constant bytes that its allocation named.
    pub const fn as_prefilled(self) -> Self {
        Self { prefilled: 1, ..self }
    }

    /// Cuts the frame's end off, so that `length` bytes are left; what is sent is as long as this says.
    #[inline]
    pub fn shorten(&mut self, length: usize) {
        self.length = self.length.min(length as u32);
    }

    /// The bytes of the frame, without FCS.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `from_raw` promises `length` readable bytes for as long as the frame is the caller's; an empty slot has
        // none.
        unsafe { std::slice::from_raw_parts(self.data, self.length as usize) }
    }

    /// The bytes of the frame, without FCS, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and a `Frame` slot is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.length as usize) }
    }
}
