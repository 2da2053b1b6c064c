//! The tester inside the kernel: XDP programs make, stamp, receive and check every frame.
