//! An object file, from its bytes to loaded programs and maps.

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::null;

#[repr(C)]
struct RawObject {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawMap {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawProgram {
    _opaque: [u8; 0],
}

#[repr(C)]
struct RawLink {
    _opaque: [u8; 0],
}

// libbpf 1.0 and later: constructors give NULL and set errno.
unsafe extern "C" {
    fn bpf_object__open_mem(bytes: *const c_void, size: usize, options: *const c_void) -> *mut RawObject;
    fn bpf_object__load(object: *mut RawObject) -> c_int;
    fn bpf_object__close(object: *mut RawObject);
    fn bpf_object__find_map_by_name(object: *const RawObject, name: *const c_char) -> *mut RawMap;
    fn bpf_object__find_program_by_name(object: *const RawObject, name: *const c_char) -> *mut RawProgram;
    fn bpf_map__fd(map: *const RawMap) -> c_int;
    fn bpf_map__set_max_entries(map: *mut RawMap, entries: u32) -> c_int;
    fn bpf_map__set_value_size(map: *mut RawMap, size: u32) -> c_int;
    fn bpf_map__initial_value(map: *mut RawMap, size: *mut usize) -> *mut c_void;
    fn bpf_program__fd(program: *const RawProgram) -> c_int;
    fn bpf_program__attach(program: *const RawProgram) -> *mut RawLink;
    fn bpf_program__set_ifindex(program: *mut RawProgram, interface: u32);
    fn bpf_program__set_flags(program: *mut RawProgram, flags: u32) -> c_int;
    fn bpf_program__set_autoload(program: *mut RawProgram, load: bool) -> c_int;
    fn bpf_link__destroy(link: *mut RawLink) -> c_int;
    fn libbpf_num_possible_cpus() -> c_int;
}

/// An object that is open and not loaded yet: the sizes of its maps can still be set.
#[derive(Debug)]
pub struct Object {
    raw: *mut RawObject,
}

// SAFETY: nothing in a bpf_object belongs to a thread.
unsafe impl Send for Object {}

impl Object {
    /// Opens an ELF object that is in memory.
    pub fn open(bytes: &[u8]) -> io::Result<Self> {
        // SAFETY: libbpf reads `bytes` during the call only.
        let raw = unsafe { bpf_object__open_mem(bytes.as_ptr().cast(), bytes.len(), null()) };
        if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self { raw }) }
    }

    fn map(&self, name: &str) -> io::Result<*mut RawMap> {
        let text = CString::new(name)?;
        // SAFETY: object and name are valid during the call.
        let map = unsafe { bpf_object__find_map_by_name(self.raw, text.as_ptr()) };
        if map.is_null() { Err(missing("map", name)) } else { Ok(map) }
    }

    fn program(&self, name: &str) -> io::Result<*mut RawProgram> {
        let text = CString::new(name)?;
        // SAFETY: object and name are valid during the call.
        let program = unsafe { bpf_object__find_program_by_name(self.raw, text.as_ptr()) };
        if program.is_null() { Err(missing("program", name)) } else { Ok(program) }
    }

    /// Sets how many entries a map has.
    pub fn set_entries(&mut self, map: &str, entries: u32) -> io::Result<()> {
        // SAFETY: the map belongs to this object, which is not loaded yet.
        check(unsafe { bpf_map__set_max_entries(self.map(map)?, entries) })
    }

    /// Sets how large each entry of a map is, which has no type then.
    pub fn set_entry_bytes(&mut self, map: &str, bytes: u32) -> io::Result<()> {
        // SAFETY: the map belongs to this object, which is not loaded yet.
        check(unsafe { bpf_map__set_value_size(self.map(map)?, bytes) })
    }

    /// Leaves a program out that this kernel, or this use, has no need of.
    pub fn leave_out(&mut self, program: &str) -> io::Result<()> {
        // SAFETY: the program belongs to this object, which is not loaded yet.
        check(unsafe { bpf_program__set_autoload(self.program(program)?, false) })
    }

    /// Makes a program for one interface, whose driver then answers what it asks of a frame (Linux 6.3).
    pub fn bind_to_interface(&mut self, program: &str, interface: u32) -> io::Result<()> {
        const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;
        let program = self.program(program)?;
        // SAFETY: the program belongs to this object, which is not loaded yet.
        unsafe { bpf_program__set_ifindex(program, interface) };
        // SAFETY: as above.
        check(unsafe { bpf_program__set_flags(program, BPF_F_XDP_DEV_BOUND_ONLY) })
    }

    /// Writes the front of a map of constants (`.rodata`): programs see them while they are verified.
    pub fn set_constants(&mut self, map: &str, bytes: &[u8]) -> io::Result<()> {
        let map = self.map(map)?;
        let mut size = 0usize;
        // SAFETY: the map belongs to this object, which is not loaded yet; libbpf gives the place of its initial bytes.
        let place = unsafe { bpf_map__initial_value(map, &raw mut size) };
        if place.is_null() || size < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        // SAFETY: there are `size` bytes at `place`, which is at least as many as are copied.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.cast(), bytes.len()) };
        Ok(())
    }

    /// Creates the maps and has the kernel verify the programs; what it objects to goes to stderr.
    pub fn load(self) -> io::Result<Loaded> {
        // SAFETY: the object is open and not loaded.
        check(unsafe { bpf_object__load(self.raw) })?;
        Ok(Loaded { object: self })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: opened by `open` and closed once.
        unsafe { bpf_object__close(self.raw) };
    }
}

/// An object whose maps and programs are in the kernel, as long as this lives.
#[derive(Debug)]
pub struct Loaded {
    object: Object,
}

impl Loaded {
    /// The descriptor of a map, which belongs to this object.
    pub fn map(&self, name: &str) -> io::Result<RawFd> {
        let map = self.object.map(name)?;
        // SAFETY: the map belongs to this object.
        descriptor(unsafe { bpf_map__fd(map) })
    }

    /// The descriptor of a program, which belongs to this object.
    pub fn program(&self, name: &str) -> io::Result<RawFd> {
        let program = self.object.program(name)?;
        // SAFETY: the program belongs to this object.
        descriptor(unsafe { bpf_program__fd(program) })
    }

    /// Attaches a program to the place that its section names (a tracepoint).
    pub fn attach(&self, name: &str) -> io::Result<Trace> {
        let program = self.object.program(name)?;
        // SAFETY: the program belongs to this object, which is loaded.
        let raw = unsafe { bpf_program__attach(program) };
        if raw.is_null() { Err(io::Error::last_os_error()) } else { Ok(Trace { raw }) }
    }
}

/// How many CPUs this machine may have.
pub fn possible_cpus() -> usize {
    // SAFETY: no arguments.
    usize::try_from(unsafe { libbpf_num_possible_cpus() }).unwrap_or(1)
}

/// An attached program that is no XDP program; it is detached when this is dropped.
#[derive(Debug)]
pub struct Trace {
    raw: *mut RawLink,
}

// SAFETY: nothing in a bpf_link belongs to a thread.
unsafe impl Send for Trace {}

impl Drop for Trace {
    fn drop(&mut self) {
        // SAFETY: made by bpf_program__attach and destroyed once.
        unsafe { bpf_link__destroy(self.raw) };
    }
}

fn missing(what: &str, name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("the BPF object has no {what} {name}"))
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}

fn descriptor(result: c_int) -> io::Result<RawFd> {
    check(result).map(|()| result)
}
