//! What the kernel says of BPF programs at an interface.

use std::mem::size_of;

const BPF_PROG_QUERY: libc::c_long = 16;
/// Where tcx programs (Linux 6.6 and newer) are attached: before a frame is received, and before it is sent.
pub const TCX_PLACES: [(&str, u32); 2] = [("ingress", 46), ("egress", 47)];

/// `union bpf_attr` of BPF_PROG_QUERY.
#[repr(C)]
#[derive(Default)]
struct Query {
    interface: u32,
    place: u32,
    query_flags: u32,
    attach_flags: u32,
    program_ids: u64,
    count: u32,
    padding: u32,
    program_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// How often the tcx programs of an interface of this network namespace changed, and how many there are; `None` where
/// there are none, or the kernel knows of no such programs.
pub fn tcx_revision(interface: u32, place: u32) -> Option<(u64, u32)> {
    let mut query = Query { interface, place, ..Query::default() };
    // SAFETY: the kernel reads and writes `query`, of this size, and nothing that it points to.
    let result = unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_QUERY, &raw mut query, size_of::<Query>()) };
    (result == 0 && query.count > 0).then_some((query.revision, query.count))
}
