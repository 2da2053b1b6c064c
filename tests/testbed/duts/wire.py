"""Real frames for the lab tests of DUTs: raw sockets in namespaces, a paced sender, and frames built by hand."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address

from nicbench.testbed.duts.base import Addressing

ETH_P_ALL = 3
CLONE_NEWNET = 0x40000000
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
FCS_BYTES = 4
LIBC = ctypes.CDLL(None, use_errno=True)


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Msghdr(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("iov", ctypes.POINTER(_Iovec)),
        ("iov_length", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Mmsghdr(ctypes.Structure):
    _fields_ = (("header", _Msghdr), ("length", ctypes.c_uint))


def raw_socket(namespace: str, device: str) -> socket.socket:
    """A packet socket bound to ``device`` inside ``namespace``; it hears no frame that the device itself sends."""
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{namespace}", "rb") as away:
        if LIBC.setns(away.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), namespace)
        try:
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            raw.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
            raw.bind((device, 0))
        finally:
            LIBC.setns(home.fileno(), CLONE_NEWNET)
    return raw


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp_frame(source_mac: str, destination_mac: str, source: str, destination: str, frame_bytes: int) -> bytes:
    """An Ethernet frame with UDP over IPv4 or IPv6; ``frame_bytes`` counts the FCS, which the bytes do not hold."""
    version = ip_address(source).version
    addresses = ip_address(source).packed + ip_address(destination).packed
    udp_bytes = frame_bytes - FCS_BYTES - 14 - (20 if version == 4 else 40)
    payload = bytes(index & 0xFF for index in range(udp_bytes - 8))
    pseudo = addresses + struct.pack("!II", udp_bytes, 17) + struct.pack("!HHHH", 4000, 9, udp_bytes, 0) + payload
    udp = struct.pack("!HHHH", 4000, 9, udp_bytes, checksum(pseudo + b"\0" * (len(pseudo) % 2)) or 0xFFFF) + payload
    if version == 4:
        bare = struct.pack("!BBHHHBBH", 0x45, 0, 20 + udp_bytes, 0, 0, 64, 17, 0) + addresses
        header = bare[:10] + struct.pack("!H", checksum(bare)) + bare[12:]
    else:
        header = struct.pack("!IHBB", 0x60000000, udp_bytes, 17, 64) + addresses
    kind = 0x0800 if version == 4 else 0x86DD
    return mac_bytes(destination_mac) + mac_bytes(source_mac) + struct.pack("!H", kind) + header + udp


def frame_of(way: Addressing, frame_bytes: int) -> bytes:
    """The UDP frame of a way through the DUT."""
    return udp_frame(way.source_mac, way.destination_mac, way.source_address, way.destination_address, frame_bytes)


@dataclass(frozen=True)
class Burst:
    """One call of the sender, by the monotonic clock, which is also the kernel's for BPF programs."""

    start_s: float
    end_s: float
    frames: int


@dataclass(frozen=True)
class Sent:
    """What a sender did, burst by burst."""

    bursts: tuple[Burst, ...]

    @property
    def frames(self) -> int:
        return sum(burst.frames for burst in self.bursts)

    @property
    def duration_s(self) -> float:
        return self.bursts[-1].end_s - self.bursts[0].start_s


def send_paced(raw: socket.socket, frame: bytes, frames: int, rate_frames_per_s: float, burst: int = 32) -> Sent:
    """Sends ``frames`` copies at an even rate."""
    buffer = ctypes.create_string_buffer(frame, len(frame))
    iovec = _Iovec(ctypes.cast(buffer, ctypes.c_void_p), len(frame))
    messages = (_Mmsghdr * burst)()
    for message in messages:
        message.header.iov = ctypes.pointer(iovec)
        message.header.iov_length = 1
    bursts = []
    sent = 0
    start = time.monotonic()
    while sent < frames:
        while (time.monotonic() - start) * rate_frames_per_s < sent:
            pass
        began = time.monotonic()
        done = LIBC.sendmmsg(raw.fileno(), messages, min(burst, frames - sent), 0)
        if done < 0 and ctypes.get_errno() not in (errno.ENOBUFS, errno.EAGAIN):  # the device is full: try again
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if done > 0:
            bursts.append(Burst(began, time.monotonic(), done))
            sent += done
    return Sent(tuple(bursts))


def receive(raw: socket.socket, wanted: Callable[[bytes], bool], enough: int, silence_s: float = 0.3) -> list[bytes]:
    """The wanted frames that arrive, until there are ``enough`` or nothing has arrived for ``silence_s``."""
    raw.settimeout(silence_s)
    frames = []
    while len(frames) < enough:
        try:
            frame = raw.recv(65536)
        except TimeoutError:
            break
        if wanted(frame):
            frames.append(frame)
    return frames
