//! Builds the C shim and links DPDK statically with the drivers this product's users have (feature `dpdk`).

use std::env;
use std::path::{Path, PathBuf};

include!("../bpf/compile.rs");

/// Buses, memory pools and shared code of drivers. Their constructors register them, so all of each archive is linked.
const INFRASTRUCTURE: &[&str] = &[
    "bus_auxiliary",
    "bus_pci",
    "bus_vdev",
    "bus_vmbus",
    "common_iavf",
    "common_mlx5",
    "common_sfc_efx",
    "mempool_ring",
    "mempool_stack",
];

/// Drivers of network ports: virtual ones first, then cards.
const DRIVERS: &[&str] = &[
    "net_af_packet",
    "net_af_xdp",
    "net_memif",
    "net_null",
    "net_pcap",
    "net_ring",
    "net_tap",
    "net_vhost",
    "net_virtio",
    "net_atlantic",
    "net_axgbe",
    "net_bnxt",
    "net_cxgbe",
    "net_e1000",
    "net_ena",
    "net_enic",
    "net_fm10k",
    "net_gve",
    "net_hinic",
    "net_hns3",
    "net_i40e",
    "net_iavf",
    "net_ice",
    "net_igc",
    "net_ionic",
    "net_ixgbe",
    "net_mlx4",
    "net_mlx5",
    "net_netvsc",
    "net_nfp",
    "net_ngbe",
    "net_qede",
    "net_sfc",
    "net_txgbe",
    "net_vmxnet3",
];

/// The libraries that the above and the shim call; only what is called is linked.
const LIBRARIES: &[&str] = &[
    "vhost",
    "cryptodev",
    "dmadev",
    "gso",
    "security",
    "rcu",
    "hash",
    "timer",
    "pci",
    "ethdev",
    "meter",
    "net",
    "mbuf",
    "mempool",
    "stack",
    "ring",
    "eal",
    "telemetry",
    "kvargs",
];

/// What DPDK's drivers call outside DPDK. Static where the archive exists; a dynamic one is named by `doctor`.
const FOREIGN: &[&str] =
    &["pcap", "xdp", "bpf", "elf", "z", "mlx5", "mlx4", "ibverbs", "nl-route-3", "nl-3", "numa", "bsd", "md", "crypto"];

/// The C files of the shim.
const SHIM: &[&str] = &["shim.c", "shim_burst.c", "shim_pool.c", "shim_spread.c", "shim_stamps.c"];

/// libibverbs and its providers: static together or not at all.
const STATIC_VERBS: &[&str] = &["mlx5", "mlx4", "ibverbs"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for file in SHIM.iter().chain(&["shim.h", "shim_port.h", "no_dbus.c"]) {
        println!("cargo:rerun-if-changed=src/sys/dpdk/{file}");
    }
    let with_dpdk = env::var_os("CARGO_FEATURE_DPDK").is_some();
    if env::var_os("CARGO_FEATURE_XDP").is_some() {
        compile_programs(PROGRAMS);
        if !with_dpdk {
            // DPDK's AF_XDP driver brings them along.
            ["bpf", "elf", "z"].iter().for_each(|name| println!("cargo:rustc-link-arg=-l{name}"));
        }
    }
    if !with_dpdk {
        return;
    }
    let dpdk = probe();
    compile_shim(&dpdk);
    link(&dpdk.link_folder);
    println!("cargo:rustc-env=NICBENCH_DPDK_DRIVERS={}", DRIVERS.join(","));
}

/// The programs that run in the kernel.
const PROGRAMS: &[&str] = &["generate", "receive", "receive_card", "redirect"];

struct Dpdk {
    link_folder: PathBuf,
    include_folders: Vec<PathBuf>,
    baseline: Vec<String>,
}

fn probe() -> Dpdk {
    let fail = |problem: String| -> ! {
        eprintln!("{problem}");
        eprintln!(
            "next: apt-get install libdpdk-dev pkg-config, or build without DPDK: cargo build --no-default-features"
        );
        std::process::exit(1);
    };
    let library = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk");
    let library = library
        .unwrap_or_else(|error| fail(format!("DPDK 22.11 or newer (pkg-config libdpdk) was not found: {error}")));
    let link_folder = pkg_config::get_variable("libdpdk", "libdir")
        .unwrap_or_else(|error| fail(format!("pkg-config libdpdk names no library folder: {error}")));
    // DPDK's inline functions need the instructions that its own build took as baseline (Debian: corei7); nothing
    // wider is asked for.
    let machine = pkg_config_flags().into_iter().filter(|flag| flag.starts_with("-m")).collect();
    // Requirements of DPDK's own requirements add folders that the shim has no use for.
    let include_folders = library.include_paths.into_iter().filter(|folder| folder.ends_with("dpdk")).collect();
    Dpdk { link_folder: PathBuf::from(link_folder), include_folders, baseline: machine }
}

/// The compiler flags of libdpdk that the `pkg-config` crate does not report.
fn pkg_config_flags() -> Vec<String> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = std::process::Command::new(program).args(["--cflags-only-other", "libdpdk"]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

fn compile_shim(dpdk: &Dpdk) {
    let mut build = cc::Build::new();
    // DPDK 22.11's headers hold functions that are unused here and extensions of GNU C.
    build
        .files(SHIM.iter().map(|file| format!("src/sys/dpdk/{file}")))
        .std("gnu11")
        .warnings(true)
        .flag("-Wno-unused-parameter");
    // Optimised in every profile: the calls per burst are what is measured.
    build.opt_level(2).flag("-include").flag("rte_config.h");
    if STATIC_VERBS.iter().all(|name| has_archive(&dpdk.link_folder, name)) {
        build.define("NB_STATIC_VERBS", None);
    }
    for folder in &dpdk.include_folders {
        build.flag("-isystem").flag(folder.to_str().expect("an include path that is text"));
    }
    for flag in &dpdk.baseline {
        build.flag(flag);
    }
    build.compile("nicbench_dpdk_shim");
}

/// The archive of what stands in for libpcap's D-Bus.
fn without_dbus() -> PathBuf {
    cc::Build::new().file("src/sys/dpdk/no_dbus.c").cargo_metadata(false).compile("nicbench_no_dbus");
    PathBuf::from(env::var_os("OUT_DIR").expect("cargo's folder for results")).join("libnicbench_no_dbus.a")
}

fn link(folder: &Path) {
    let argument = |text: &str| println!("cargo:rustc-link-arg={text}");
    argument(&format!("-L{}", folder.display()));
    argument("-Wl,--whole-archive");
    argument(&without_dbus().display().to_string());
    for name in INFRASTRUCTURE.iter().chain(DRIVERS) {
        argument(&format!("-l:librte_{name}.a"));
    }
    argument("-Wl,--no-whole-archive");
    argument("-Wl,--start-group");
    for name in LIBRARIES {
        argument(&format!("-l:librte_{name}.a"));
    }
    for name in FOREIGN {
        if has_archive(folder, name) {
            argument(&format!("-l:lib{name}.a"));
        } else {
            argument(&format!("-l{name}"));
        }
    }
    argument("-Wl,--end-group");
    for name in [":libatomic.a", "pthread", "m", "dl"] {
        argument(&format!("-l{name}"));
    }
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|name| name == "aarch64") {
        // Atomics that ask the CPU what it has are libgcc's, the guard of the stack is the dynamic linker's.
        argument("-lgcc");
        argument("-lc");
    }
    // Binding an AF_XDP socket is retried in the shim while the queue's last owner is still being released. Only in
    // programs: a test that opens no port has no shim to find the retry in.
    for program in ["bins", "examples"] {
        println!("cargo:rustc-link-arg-{program}=-Wl,--wrap=bind");
        println!("cargo:rustc-link-arg-{program}=-Wl,--wrap=rte_memseg_get_fd");
    }
}

fn has_archive(folder: &Path, name: &str) -> bool {
    folder.join(format!("lib{name}.a")).exists()
}
