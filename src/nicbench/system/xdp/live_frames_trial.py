"""Tries whether the kernel makes frames by XDP: BPF_PROG_RUN in the mode of live frames. Run as a program.

The one frame that it makes is dropped by the program that makes it: nothing is sent, and nothing remains. It is given
to the Python of any host on its stdin, so it imports nothing of nicbench.

Source: Documentation/bpf/bpf_prog_run.rst (Linux 5.18 and newer), include/uapi/linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct

_SYSTEM_CALLS = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_PROG_LOAD, _PROG_TEST_RUN = 5, 10
_XDP, _XDP_DROP, _LIVE_FRAMES = 6, 1, 1 << 1
# mov64 r0, XDP_DROP; exit
_PROGRAM = struct.pack("=BBhiBBhi", 0xB7, 0, 0, _XDP_DROP, 0x95, 0, 0, 0)
_FRAME = bytes(60)


def load_attribute(program: int, license_text: int) -> bytes:
    """``union bpf_attr`` of BPF_PROG_LOAD, up to the flags; the arguments are addresses."""
    return struct.pack("=IIQQIIQII", _XDP, len(_PROGRAM) // 8, program, license_text, 0, 0, 0, 0, 0)


def run_attribute(program: int, frame: int) -> bytes:
    """``union bpf_attr`` of BPF_PROG_TEST_RUN for one frame: a descriptor, and the address of the frame's bytes."""
    return struct.pack("=IIIIQQIIIIQQIII4x", program, 0, len(_FRAME), 0, frame, 0, 1, 0, 0, 0, 0, 0, _LIVE_FRAMES, 0, 1)


def main() -> None:
    """Prints ``{"works": true}``, or false with the step that failed and the kernel's reason."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        return
    program, license_text, frame = (ctypes.create_string_buffer(data) for data in (_PROGRAM, b"GPL", _FRAME))
    loaded, reason = _call(number, _PROG_LOAD, load_attribute(*map(ctypes.addressof, (program, license_text))))
    if loaded < 0:
        print(json.dumps({"works": False, "step": "load", "reason": reason}))
        return
    result, reason = _call(number, _PROG_TEST_RUN, run_attribute(loaded, ctypes.addressof(frame)))
    os.close(loaded)
    print(json.dumps({"works": True} if result == 0 else {"works": False, "step": "run", "reason": reason}))


def _call(number: int, command: int, attribute: bytes) -> tuple[int, str]:
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    library = ctypes.CDLL(None, use_errno=True)
    result = library.syscall(ctypes.c_long(number), ctypes.c_long(command), buffer, ctypes.c_ulong(len(attribute)))
    return result, os.strerror(ctypes.get_errno())


if __name__ == "__main__":
    main()
