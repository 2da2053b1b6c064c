"""Forwards IPv4 from one interface to another after a delay, until it is interrupted, and says how long it held frames.

    python delaying_forwarder.py FROM TO NEXT_MAC DELAY_NS

It prints the least that it really took, by the kernel's time stamps of arrival, in nanoseconds: no assertion has to
rely on its punctuality.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
import time

IPV4 = 0x0800
TIME_STAMPS = 35  # SO_TIMESTAMPNS, which Python has no name for
ADDRESSES_BYTES = 12
LONGEST_FRAME = 2048


def forward(source: str, sink: str, next_mac: bytes, delay_ns: int) -> list[int]:
    """Returns for how long each frame was held."""
    held = []
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(IPV4)) as arriving,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as leaving,
    ):
        arriving.setsockopt(socket.SOL_SOCKET, TIME_STAMPS, 1)
        arriving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**24)
        arriving.bind((source, IPV4))
        leaving.bind((sink, 0))
        addresses = next_mac + leaving.getsockname()[4]
        print("ready", flush=True)
        try:
            while True:
                frame, more, _, where = arriving.recvmsg(LONGEST_FRAME, 64)
                if where[2] == socket.PACKET_OUTGOING:
                    continue
                seconds, nanoseconds = struct.unpack("qq", more[0][2])
                came_ns = seconds * 10**9 + nanoseconds
                while time.time_ns() < came_ns + delay_ns:
                    pass
                held.append(time.time_ns() - came_ns)
                leaving.send(addresses + frame[ADDRESSES_BYTES:])
        except KeyboardInterrupt:
            return held


if __name__ == "__main__":
    source, sink, mac, delay = sys.argv[1:]
    print(min(forward(source, sink, bytes.fromhex(mac.replace(":", "")), int(delay))), flush=True)
