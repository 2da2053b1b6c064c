"""Sets how many addresses a Linux bridge learns at most (`fdb_max_learned`, Linux 6.7), by netlink, and reads it back.

iproute2 knows the attribute since 6.7, and the distributions' long-term releases are older; sysfs has no file for it.
So this file is run by the Python of the host: it needs nothing but Python's own modules. It prints what was read back;
a kernel without the attribute ignores it, and nothing is printed.
"""

import os
import socket
import struct
import sys

NEW_LINK, GET_LINK, ERROR = 16, 18, 2  # RTM_NEWLINK, RTM_GETLINK, NLMSG_ERROR
REQUEST, ACKNOWLEDGE = 1, 4
LINK_INFO, INFO_KIND, INFO_DATA, FDB_MAX_LEARNED = 18, 1, 2, 49
HEADER_BYTES, LINK_BYTES = 16, 16


def attribute(kind: int, data: bytes) -> bytes:
    """Returns a netlink attribute, padded to four bytes."""
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    """Returns the attributes in these bytes, by kind."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[max(4, (length + 3) & ~3) :]
    return found


def ask(kind: int, flags: int, body: bytes) -> bytes:
    """Sends a request, and returns the reply without its header; OSError where the kernel refuses it."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.sendto(struct.pack("=IHHII", HEADER_BYTES + len(body), kind, REQUEST | flags, 1, 0) + body, (0, 0))
        reply = kernel.recv(1 << 16)
    if struct.unpack_from("=H", reply, 4)[0] == ERROR:
        number = -struct.unpack_from("=i", reply, HEADER_BYTES)[0]
        if number:
            raise OSError(number, os.strerror(number))
    return reply[HEADER_BYTES:]


def limit(device: str, most: int) -> int | None:
    """Sets the limit of the bridge, and returns what it reads as afterwards; None where the kernel has no limit."""
    link = struct.pack("=BBHiII", 0, 0, 0, socket.if_nametoindex(device), 0, 0)
    data = attribute(INFO_DATA, attribute(FDB_MAX_LEARNED, struct.pack("=I", most)))
    ask(NEW_LINK, ACKNOWLEDGE, link + attribute(LINK_INFO, attribute(INFO_KIND, b"bridge\0") + data))
    told = attributes(ask(GET_LINK, 0, link)[LINK_BYTES:])
    there = attributes(attributes(told[LINK_INFO])[INFO_DATA]).get(FDB_MAX_LEARNED)
    return None if there is None else int(struct.unpack("=I", there)[0])


if __name__ == "__main__":
    held = limit(sys.argv[1], int(sys.argv[2]))
    print("" if held is None else held)
