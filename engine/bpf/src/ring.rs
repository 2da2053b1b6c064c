//! A ring buffer by which programs hand records to this process.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::null;

#[repr(C)]
struct RawRing {
    _opaque: [u8; 0],
}

type OnSample = unsafe extern "C" fn(context: *mut c_void, data: *mut c_void, size: usize) -> c_int;

unsafe extern "C" {
    fn ring_buffer__new(map: c_int, on_sample: OnSample, context: *mut c_void, options: *const c_void) -> *mut RawRing;
    fn ring_buffer__free(ring: *mut RawRing);
    fn ring_buffer__consume(ring: *mut RawRing) -> c_int;
}

/// The reading end of a map of the kind BPF_MAP_TYPE_RINGBUF.
#[derive(Debug)]
pub struct Ring {
    raw: *mut RawRing,
    /// Where records go while they are read; libbpf knows its address.
    records: Box<Records>,
}

#[derive(Debug, Default)]
struct Records {
    list: Vec<Vec<u8>>,
}

// SAFETY: nothing in a ring_buffer belongs to a thread.
unsafe impl Send for Ring {}

impl Ring {
    pub fn new(map: RawFd) -> io::Result<Self> {
        let mut records = Box::<Records>::default();
        let context: *mut Records = &raw mut *records;
        // SAFETY: the context stays where it is, in its box, for as long as the ring lives.
        let raw = unsafe { ring_buffer__new(map, keep, context.cast(), null()) };
        if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self { raw, records }) }
    }

    /// All records that programs have submitted since the last call, in their order.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        // SAFETY: the ring lives, and only `keep` touches the records meanwhile.
        unsafe { ring_buffer__consume(self.raw) };
        std::mem::take(&mut self.records.list)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: made by `new` and freed once.
        unsafe { ring_buffer__free(self.raw) };
    }
}

unsafe extern "C" fn keep(context: *mut c_void, data: *mut c_void, size: usize) -> c_int {
    // SAFETY: the context is the box of `Ring::new`, and libbpf gives `size` bytes at `data`.
    unsafe {
        let records = &mut *context.cast::<Records>();
        records.list.push(std::slice::from_raw_parts(data.cast::<u8>(), size).to_vec());
    }
    0
}
