//! The calls of bpf(2) that libbpf adds nothing to: XDP links, and running a program.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
const BPF_PROG_TEST_RUN: libc::c_int = 10;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_LINK_UPDATE: libc::c_int = 29;
const BPF_XDP: u32 = 37;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const ANY_MODE: libc::c_int = 0;

unsafe extern "C" {
    fn bpf_xdp_query_id(interface: libc::c_int, flags: libc::c_int, program: *mut u32) -> libc::c_int;
}

/// bpf(2) with attributes that only hold integers.
fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes no more than `size_of::<T>()` bytes at `attributes`, and what these point to,
    // which the callers keep alive.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Before this version BPF_PROG_RUN gives a frame that comes back from a driver to the program again as the driver left
/// it (virtio_net moves its beginning), unless the program changed its bounds; see `reset_ctx` in net/bpf/test_run.c.
const RESETS_FRAMES_SINCE: (u32, u32) = (6, 4);

/// Whether the kernel resets each live frame before the program sees it again.
pub fn resets_frames() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    version(&release).is_some_and(|version| version >= RESETS_FRAMES_SINCE)
}

/// `6.1.0-21-amd64` is 6.1.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.trim().split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// An XDP program in the driver of an interface. It is detached when this is dropped, or the process ends.
#[derive(Debug)]
pub struct XdpLink {
    descriptor: OwnedFd,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    rest: [u64; 4],
}

#[repr(C)]
#[derive(Default)]
struct LinkUpdate {
    link: u32,
    program: u32,
    flags: u32,
    old_program: u32,
}

impl XdpLink {
    /// Attaches in native mode. EBUSY: another program is there; EOPNOTSUPP: the driver has no native mode.
    pub fn attach(program: RawFd, interface: u32) -> io::Result<Self> {
        let mut attributes = LinkCreate {
            program: program as u32,
            target: interface,
            attach_type: BPF_XDP,
            flags: XDP_FLAGS_DRV_MODE,
            ..LinkCreate::default()
        };
        let descriptor = bpf(BPF_LINK_CREATE, &mut attributes)?;
        // SAFETY: a new descriptor that nobody else has.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) } })
    }

    /// Puts another program in the place of the present one, without a frame in between.
    pub fn replace(&self, program: RawFd) -> io::Result<()> {
        let link = self.descriptor.as_raw_fd() as u32;
        let mut attributes = LinkUpdate { link, program: program as u32, ..LinkUpdate::default() };
        bpf(BPF_LINK_UPDATE, &mut attributes).map(|_| ())
    }
}

#[repr(C)]
#[derive(Default)]
struct ElementUpdate {
    map: u32,
    _padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Writes the interfaces to which a program may redirect into its device map, the first at 0.
pub fn set_devices(map: RawFd, interfaces: &[u32]) -> io::Result<()> {
    for (index, interface) in interfaces.iter().enumerate() {
        let key = index as u32;
        let mut attributes = ElementUpdate {
            map: map as u32,
            key: (&raw const key) as u64,
            value: std::ptr::from_ref(interface) as u64,
            ..ElementUpdate::default()
        };
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes)?;
    }
    Ok(())
}

/// Fills all entries of a device map with one interface. A program handles each frame before it leaves.
pub fn set_devices_with_program(map: RawFd, entries: u32, interface: u32, program: RawFd) -> io::Result<()> {
    let value = [interface, program as u32]; // `struct bpf_devmap_val` of linux/bpf.h
    for key in 0..entries {
        let mut attributes = ElementUpdate {
            map: map as u32,
            key: (&raw const key) as u64,
            value: value.as_ptr() as u64,
            ..ElementUpdate::default()
        };
        bpf(BPF_MAP_UPDATE_ELEM, &mut attributes)?;
    }
    Ok(())
}

/// `struct bpf_cpumap_val` of linux/bpf.h.
#[repr(C)]
struct Processor {
    queue_frames: u32,
    program: u32,
}

/// Makes `cpu` the processor to which a program may redirect by this map, with a queue of so many frames: a kernel
/// thread there runs `program` over each.
pub fn set_processor(map: RawFd, cpu: u32, queue_frames: u32, program: RawFd) -> io::Result<()> {
    let value = Processor { queue_frames, program: program as u32 };
    let mut attributes = ElementUpdate {
        map: map as u32,
        key: (&raw const cpu) as u64,
        value: (&raw const value) as u64,
        ..ElementUpdate::default()
    };
    bpf(BPF_MAP_UPDATE_ELEM, &mut attributes).map(|_| ())
}

#[repr(C)]
#[derive(Default)]
struct InfoRequest {
    descriptor: u32,
    bytes: u32,
    place: u64,
}

/// The number by which the kernel tells of a map.
pub fn map_number(map: RawFd) -> io::Result<u32> {
    // The front of `struct bpf_map_info`: its type, and its number.
    let mut info = [0u32; 2];
    let bytes = size_of_val(&info) as u32;
    let mut attributes = InfoRequest { descriptor: map as u32, bytes, place: info.as_mut_ptr() as u64 };
    bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attributes)?;
    Ok(info[1])
}

/// The id of the XDP program on an interface, in whatever mode.
pub fn attached_program(interface: u32) -> Option<u32> {
    let mut program = 0u32;
    // SAFETY: libbpf writes one u32.
    let result = unsafe { bpf_xdp_query_id(interface as libc::c_int, ANY_MODE, &raw mut program) };
    (result == 0 && program != 0).then_some(program)
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    result: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    _padding: u32,
}

/// `struct xdp_md` of linux/bpf.h.
#[repr(C)]
#[derive(Default)]
struct XdpContext {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_interface: u32,
    receive_queue: u32,
    egress_interface: u32,
}

/// The most runs of a batch (the kernel's TEST_XDP_MAX_BATCH).
pub const LARGEST_BATCH: usize = 256;
/// The longest frame without FCS that the kernel makes: a page less what it keeps there.
pub const LARGEST_FRAME: usize = 3392;

/// How a program is to make frames (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).
#[derive(Debug, Clone, Copy)]
pub struct LiveFrames {
    /// How often the program runs; each run makes a frame or drops it.
    pub runs: u32,
    /// Runs between which the kernel neither sends what was redirected nor looks for other work; [`LARGEST_BATCH`] at most.
    pub batch: u32,
}

impl LiveFrames {
    /// Runs the program in the calling thread over frames that begin as `frame`. EINTR: a signal ended it early.
    pub fn run(self, program: RawFd, frame: &[u8]) -> io::Result<()> {
        let context = XdpContext { data_end: frame.len() as u32, ..XdpContext::default() };
        let mut attributes = TestRun {
            program: program as u32,
            data_size_in: frame.len() as u32,
            data_in: frame.as_ptr() as u64,
            repeat: self.runs,
            context_size_in: size_of::<XdpContext>() as u32,
            context_in: (&raw const context) as u64,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch_size: self.batch,
            ..TestRun::default()
        };
        bpf(BPF_PROG_TEST_RUN, &mut attributes).map(|_| ())
    }
}

/// Runs an XDP program `repeat` times over a copy of `frame` that reaches nobody. Returns its last verdict (XDP_DROP is
/// 1, XDP_PASS 2) and the mean time of a run in nanoseconds.
pub fn test_run(program: RawFd, frame: &[u8], repeat: u32) -> io::Result<(u32, u32)> {
    let mut attributes = TestRun {
        program: program as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        repeat,
        ..TestRun::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut attributes)?;
    Ok((attributes.result, attributes.duration))
}

/// Runs an XDP program once over a copy of `frame`, which reaches nobody: its verdict, and the frame that it left.
pub fn test_frame(program: RawFd, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
    let mut left = vec![0; 4096];
    let mut attributes = TestRun {
        program: program as u32,
        data_size_in: frame.len() as u32,
        data_in: frame.as_ptr() as u64,
        data_size_out: left.len() as u32,
        data_out: left.as_mut_ptr() as u64,
        repeat: 1,
        ..TestRun::default()
    };
    bpf(BPF_PROG_TEST_RUN, &mut attributes)?;
    left.truncate(attributes.data_size_out as usize);
    Ok((attributes.result, left))
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn a_kernels_version_is_read_from_its_release() {
        assert_eq!(version("6.1.0-56-amd64\n"), Some((6, 1)));
        assert_eq!(version("6.18.44\n"), Some((6, 18)));
        assert_eq!(version("5.18-rc1\n"), Some((5, 18)));
        assert_eq!(version(""), None);
    }
}
