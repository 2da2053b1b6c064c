"""What a process gives up of its rights for good: capabilities, other users' files, the network, and calls that no
reader of files needs (capabilities(7), landlock(7), seccomp(2)). Every call here is to the kernel, and concerns this
process and those that it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

CAP_DAC_READ_SEARCH: Final = 2
CAP_NET_BIND_SERVICE: Final = 10

_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 1, 24, 28, 38, 47
_ROOT_IS_NOBODY: Final = 0b1111
"""No user has capabilities for being root, and none loses them for not being root, not even in access(2); for good."""
_AMBIENT_RAISE: Final = 2
_CAPABILITY_VERSION: Final = 0x20080522
_MOST_CAPABILITIES: Final = 64

# The numbers of these system calls are the same on every architecture.
_SYS_CREATE_RULESET, _SYS_ADD_RULE, _SYS_RESTRICT_SELF = 444, 445, 446
_GET_VERSION: Final = 1
_RULE_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _DEVICE_CONTROL = 1 << 14, 1 << 15
_READING: Final = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights of files each version of Landlock knows; later ones know one more."""
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_LOAD, _IS, _IS_AT_LEAST, _HAS, _GIVE = 0x20, 0x15, 0x35, 0x45, 0x06
"""Classic BPF: BPF_LD | BPF_W | BPF_ABS, BPF_JMP with BPF_JEQ, BPF_JGE and BPF_JSET, BPF_RET."""
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBERS_OF_X32: Final = 0x40000000
_NEW_NAMESPACES: Final = 0x7E020000
_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""What the kernel calls each, and its place in ``_CALLS``."""
_CLONE, _CLONE3 = (56, 220), 435
_CALLS: Final = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
}
"""What is refused, by the numbers of the architectures."""

_libc = ctypes.CDLL(None, use_errno=True)


def _call(function: str, *arguments: object) -> int:
    value = int(getattr(_libc, function)(*arguments))
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{function}: {os.strerror(number)}")
    return value


def _process_control(option: int, *values: int) -> None:
    _call("prctl", option, *(ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]))


def die_with_parent(number: int) -> None:
    """Has the kernel send a signal to this process when its parent ends."""
    _process_control(_PR_SET_PDEATHSIG, number)


def become(user: int, group: int, kept: Collection[int]) -> None:
    """Makes this process, which is root's, another user's, with these capabilities and no others, also later on."""
    _process_control(_PR_SET_SECUREBITS, _ROOT_IS_NOBODY)
    for capability in set(range(_MOST_CAPABILITIES)) - set(kept):
        try:
            _process_control(_PR_CAPBSET_DROP, capability)
        except OSError:  # this kernel has fewer
            break
    os.setgroups(())
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    keep_capabilities(kept)


def keep_capabilities(kept: Collection[int]) -> None:
    """Gives up all capabilities but these, which the programs that it starts have as well."""
    low, high = (sum(1 << each % 32 for each in kept if each // 32 == word) for word in (0, 1))
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    _call("capset", header, struct.pack("6I", low, low, low, high, high, high))
    for capability in kept:
        _process_control(_PR_CAP_AMBIENT, _AMBIENT_RAISE, capability)


def gain_nothing() -> None:
    """Makes programs that are set-user-ID ordinary ones for this process."""
    _process_control(_PR_SET_NO_NEW_PRIVS, 1)


def refuse_calls() -> None:
    """Has the kernel refuse the calls that a reader of files does not need, and namespaces of its own.

    Programs of another kind of machine can call nothing. Where the kernel has no filters, or the numbers of this
    machine's calls are not known here, nothing is refused.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    architecture, place = _ARCHITECTURES[machine]
    numbers = [call[place] for call in _CALLS.values()]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IS, 1, 0, architecture),
        (_GIVE, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        # With flags that no filter can read; the C library then calls ``clone``.
        (_IS, 0, 1, _CLONE3),
        (_GIVE, 0, 0, _REFUSE | errno.ENOSYS),
        *((_IS, len(numbers) + 4 - index, 0, number) for index, number in enumerate(numbers)),
        (_IS_AT_LEAST, 4, 0, _NUMBERS_OF_X32),
        (_IS, 0, 2, _CLONE[place]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_HAS, 1, 0, _NEW_NAMESPACES),
        (_GIVE, 0, 0, _ALLOW),
        (_GIVE, 0, 0, _REFUSE | errno.EPERM),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    filters = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(program)))
    try:
        _process_control(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(filters))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise


def landlock_version() -> int:
    """Returns the version of Landlock that this kernel has; 0 where it has none."""
    return max(0, int(_libc.syscall(_SYS_CREATE_RULESET, None, ctypes.c_size_t(0), _GET_VERSION)))


def confine_to(reads: Iterable[Path], writes: Iterable[Path], *, listens: bool, connects: bool) -> None:
    """Leaves this process these files and folders to read, and these to write to; what is missing is left out.

    The network and signals to other processes are confined where the kernel's Landlock knows how.
    """
    version = landlock_version()
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    network = (_BIND | _CONNECT) if version >= 4 else 0
    scoped = (_ABSTRACT_SOCKETS | _SIGNALS) if version >= 6 else 0
    allowed = (_BIND if listens else 0) | (_CONNECT if connects else 0)
    attributes = struct.pack("QQQ", rights, network & ~allowed, scoped)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call("syscall", _SYS_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    try:
        for path in reads:
            _allow(ruleset, path, _READING & rights)
        for path in writes:
            _allow(ruleset, path, rights)
        _call("syscall", _SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if path.is_dir() else rights & _OF_FILES
        _call("syscall", _SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", allowed, place), 0)
    finally:
        os.close(place)
