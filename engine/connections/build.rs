//! Compiles the programs for the kernel and links libbpf (feature `xdp`).

use std::env;
use std::path::PathBuf;

include!("../bpf/compile.rs");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_XDP").is_some() {
        compile_programs(&["connections"]);
        // Archives, because the program is linked statically. libelf of Debian 13 compresses by zstd, too.
        let zstd = env::var("CARGO_CFG_TARGET_ARCH")
            .is_ok_and(|arch| PathBuf::from(format!("/usr/lib/{arch}-linux-gnu/libzstd.a")).exists());
        for name in ["bpf", "elf", "z"].into_iter().chain(zstd.then_some("zstd")) {
            println!("cargo:rustc-link-arg=-l:lib{name}.a");
        }
        // They call functions of libc that nothing before them may have called, and the linker reads from left to right.
        // On x86 all of libc is there already, and named again it leaves calls to nowhere in a static program (PIE).
        if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "aarch64") {
            println!("cargo:rustc-link-arg=-lc");
            println!("cargo:rustc-link-arg=-lgcc");
        }
    }
}
