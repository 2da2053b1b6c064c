// Part of the build scripts of the crates that have programs for the kernel.

/// Compiles programs from `bpf/NAME.bpf.c` to `NAME.o`, which becomes part of the binary.
///
/// The kernel's types are read by their BTF names (CO-RE), so no kernel headers are needed. What programs of several
/// crates share lies beside this file.
fn compile_programs(names: &[&str]) {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-changed=../bpf/numbers.h");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo's folder for results"));
    for name in names {
        let mut command = std::process::Command::new(env::var_os("CLANG").unwrap_or_else(|| "clang".into()));
        command.args(["-O2", "-g", "-Wall", "-Werror", "-mcpu=v3", "-target", "bpf", "-I../bpf"]);
        // No path of this machine becomes part of the object, which is part of a program that is built reproducibly.
        command.arg("-fdebug-compilation-dir=.");
        // What the tracing macros ask for; programs read no registers.
        command.arg("-D__TARGET_ARCH_x86");
        // asm/types.h stands in the multiarch folder, which clang does not search for this target.
        if let Some(folder) = multiarch_include() {
            command.arg("-idirafter").arg(folder);
        }
        command.arg("-c").arg(format!("bpf/{name}.bpf.c")).arg("-o").arg(output.join(format!("{name}.o")));
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("bpf/{name}.bpf.c was not compiled: {command:?}");
            eprintln!(
                "next: apt-get install clang libbpf-dev, or build without programs for the kernel: cargo build --no-default-features"
            );
            std::process::exit(1);
        }
    }
}

/// Of this machine, whatever the engine is built for: the programs are the same for every CPU.
fn multiarch_include() -> Option<PathBuf> {
    let machine = env::consts::ARCH;
    Some(PathBuf::from(format!("/usr/include/{machine}-linux-gnu"))).filter(|folder| folder.is_dir())
}
