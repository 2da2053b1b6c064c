//! A hint to the processor that memory is about to be read and written.

/// Asks for the cache line at `place`; it may be ignored, and nothing is read.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch has no effect but on caches, and SSE is part of every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast()) }
}

/// Elsewhere the hint is left out.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn prefetch<T>(_place: &T) {}
