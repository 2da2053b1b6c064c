//! The same code compiled for wider registers, chosen while running: the build's baseline knows only those of 16 bytes.

/// Runs `work` compiled for AVX2 where the processor has it, else as it is.
#[inline]
pub fn run<T>(work: impl FnOnce() -> T) -> T {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        unsafe fn wide<T>(work: impl FnOnce() -> T) -> T {
            work()
        }
        // SAFETY: the processor has what the function was compiled for.
        return unsafe { wide(work) };
    }
    work()
}
