//! `shim.h` in Rust, and safe wrappers of the calls that need no port.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::sys::frame::Frame;

#[repr(C)]
pub(super) struct RawPortOptions {
    pub transmit_descriptors: u32,
    pub receive_descriptors: u32,
    pub buffers: u32,
    pub frame_bytes: u32,
    pub umem: u32,
    pub is_promiscuous: u32,
    pub packed: u32,
    pub transmit_queues: u32,
    pub receive_queues: u32,
    pub transmit_queues_each: u32,
    pub receive_queues_each: u32,
    pub own_buffers_only: u32,
    pub stamps: u32,
    pub hands_over: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawPortFacts {
    pub driver: [u8; 64],
    pub mac: [u8; 6],
    pub link_up: u8,
    pub reports_link_changes: u8,
    pub link_mbits_per_s: u32,
    pub mtu_bytes: u32,
    pub buffer_bytes: u32,
    pub transmit_descriptors: u32,
    pub receive_descriptors: u32,
    pub numa_node: i32,
    pub clock: u32,
}

#[repr(C)]
#[derive(Default)]
pub(super) struct RawPortStatistics {
    pub transmitted: u64,
    pub received: u64,
    pub missed: u64,
    pub receive_errors: u64,
    pub transmit_errors: u64,
    pub no_buffer: u64,
    pub link_changes: u64,
}

/// A port of the shim; only pointers to it exist here.
#[repr(C)]
pub(super) struct RawPort {
    _private: [u8; 0],
}

/// One thread's part of a port; only pointers to it exist here.
#[repr(C)]
pub(super) struct RawQueue {
    _private: [u8; 0],
}

/// `RawPortFacts::clock`: what reads the clock of a port's time stamps.
pub(super) const CLOCK_DEVICE: u32 = 1;
pub(super) const CLOCK_TIMESYNC: u32 = 2;
pub(super) const CLOCK_SYSTEM: u32 = 3;

/// In place of a queue's number: none.
pub(super) const NO_QUEUE: u32 = u32::MAX;

// The C side asserts the same numbers.
const _: () = assert!(size_of::<RawPortOptions>() == 56);
const _: () = assert!(size_of::<RawPortFacts>() == 100);
const _: () = assert!(size_of::<RawPortStatistics>() == 56);
const _: () = assert!(size_of::<Frame>() == 24 && align_of::<Frame>() == 8);
const _: () = {
    use std::ptr::without_provenance_mut;
    // SAFETY: the pointers are numbers without provenance and nobody reads through them; only their places in the
    // frame matter here.
    let words: [u64; 3] =
        unsafe { std::mem::transmute(Frame::from_raw(without_provenance_mut(1), 2, without_provenance_mut(3))) };
    assert!(
        words[0] == 1 && words[1] == 2 && words[2] == 3,
        "data, length and prefilled, handle: the order of struct nb_frame"
    );
};

unsafe extern "C" {
    fn nb_version() -> *const c_char;
    fn nb_error_text(error: c_int) -> *const c_char;
    fn nb_eal_start(count: c_int, arguments: *mut *mut c_char) -> c_int;
    fn nb_port_find(device: *const c_char) -> c_int;
    pub(super) fn nb_port_open(
        number: c_int,
        options: *const RawPortOptions,
        port: *mut *mut RawPort,
        facts: *mut RawPortFacts,
        step: *mut *const c_char,
    ) -> c_int;
    pub(super) fn nb_port_close(port: *mut RawPort);
    pub(super) fn nb_queue_open(port: *mut RawPort, transmit: u32, receive: u32) -> *mut RawQueue;
    pub(super) fn nb_queue_close(queue: *mut RawQueue);
    pub(super) fn nb_queue_unlinearised(queue: *const RawQueue) -> u64;
    pub(super) fn nb_launch(lcore: u32, task: extern "C" fn(*mut c_void) -> c_int, argument: *mut c_void) -> c_int;
    pub(super) fn nb_wait(lcore: u32);
    pub(super) fn nb_allocate(queue: *mut RawQueue, frames: *mut Frame, count: u32, length: u32, tag: u64) -> u32;
    pub(super) fn nb_send(queue: *mut RawQueue, frames: *const Frame, count: u32) -> u32;
    pub(super) fn nb_receive(queue: *mut RawQueue, frames: *mut Frame, count: u32) -> u32;
    pub(super) fn nb_free(frames: *const Frame, count: u32);
    pub(super) fn nb_flush(queue: *mut RawQueue);
    pub(super) fn nb_stamps(queue: *const RawQueue, frames: *const Frame, stamps: *mut u64, count: u32);
    pub(super) fn nb_clock(queue: *mut RawQueue, count: *mut u64) -> c_int;
    pub(super) fn nb_send_sampled(queue: *mut RawQueue, frames: *const Frame, count: u32, sampled: *mut u32) -> u32;
    pub(super) fn nb_transmit_stamp(queue: *mut RawQueue, stamp: *mut u64) -> c_int;
    pub(super) fn nb_sample_done(queue: *mut RawQueue);
    pub(super) fn nb_statistics(port: *mut RawPort, statistics: *mut RawPortStatistics) -> c_int;
    pub(super) fn nb_link_up(port: *mut RawPort) -> c_int;
    pub(super) fn nb_extended_count(port: *mut RawPort) -> c_int;
    pub(super) fn nb_extended(port: *mut RawPort, names: *mut [u8; 64], values: *mut u64, count: u32) -> c_int;
}

/// DPDK's version as it reports itself.
pub(super) fn version() -> String {
    // SAFETY: DPDK returns a constant text that ends with a zero byte.
    unsafe { CStr::from_ptr(nb_version()) }.to_string_lossy().into_owned()
}

/// What a negative errno means, in DPDK's words.
pub(super) fn error_text(error: c_int) -> String {
    // SAFETY: DPDK returns a text of this thread that ends with a zero byte and lives until the thread's next call.
    unsafe { CStr::from_ptr(nb_error_text(error)) }.to_string_lossy().into_owned()
}

/// Starts EAL; 0 or a negative errno. The arguments are leaked: EAL keeps pointers into them for the life of the
/// process.
pub(super) fn eal_start(arguments: &[CString]) -> c_int {
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.clone().into_raw()).collect();
    pointers.push(std::ptr::null_mut());
    let count = c_int::try_from(arguments.len()).expect("few arguments");
    // SAFETY: `count` texts that end with a zero byte and are never freed, then a null pointer, as `main` would get
    // them; the array itself is leaked as well, for EAL may reorder and keep it.
    unsafe { nb_eal_start(count, pointers.leak().as_mut_ptr()) }
}

/// The number of the port whose device has this name, or a negative errno.
pub(super) fn port_find(device: &CStr) -> c_int {
    // SAFETY: a text that ends with a zero byte, only read during the call.
    unsafe { nb_port_find(device.as_ptr()) }
}

/// The text of a fixed field that ends with a zero byte.
pub(super) fn text(field: &[u8]) -> String {
    let bytes = field.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
