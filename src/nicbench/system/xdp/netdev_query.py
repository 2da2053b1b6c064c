"""Asks the kernel what each interface can do with XDP, or with the word ``queues`` how many frames each of its receive
queues got, and prints it as JSON. Run as a program: nothing is changed.

It is given to the Python of any host on its stdin, so it imports nothing of nicbench.

Source: Documentation/netlink/specs/netdev.yaml (Linux 6.3 and newer, queues since 6.9), include/uapi/linux/genetlink.h,
netdev.h.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
from collections.abc import Iterator, Sequence

_NETLINK_GENERIC = 16
_REQUEST, _DUMP = 0x001, 0x300
_ERROR, _DONE = 2, 3
_CONTROL_FAMILY, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 0x10, 3, 1, 2
_DEV_GET, _DEV_IFINDEX = 1, 1
# Attributes of 64 bits, by what they are called in the output. The last two came with Linux 6.8.
_FLAGS = {"features": 3, "receive_metadata": 5, "socket": 6}
_QSTATS_GET, _QSTATS_IFINDEX, _QSTATS_TYPE, _QSTATS_QUEUE, _QSTATS_SCOPE, _QSTATS_RX_PACKETS = 12, 1, 2, 3, 4, 8
_RECEIVE, _BY_QUEUE = 0, 1
_HEADER, _GENERIC, _ATTRIBUTE = struct.Struct("=LHHLL"), struct.Struct("=BBH"), struct.Struct("=HH")
_TIMEOUT_S = 5.0


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and payload of each netlink message in what one read gave; a message that is cut short ends it."""
    while len(data) >= _HEADER.size:
        length, kind, *_ = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            return
        yield kind, data[_HEADER.size : length]
        data = data[_align(length) :]


def attributes(data: bytes) -> dict[int, bytes]:
    """Number and value of each attribute."""
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        length, number = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            break
        found[number] = data[_ATTRIBUTE.size : length]
        data = data[_align(length) :]
    return found


def flags_of(payload: bytes) -> tuple[int, dict[str, int]] | None:
    """Interface number and flags of one device's message; None where it lacks the number or the XDP features."""
    found = attributes(payload[_GENERIC.size :])
    index = found.get(_DEV_IFINDEX, b"")
    values = {name: found[number] for name, number in _FLAGS.items() if len(found.get(number, b"")) == 8}
    if len(index) != 4 or "features" not in values:
        return None
    flags = {name: int.from_bytes(value, sys.byteorder) for name, value in values.items()}
    return int.from_bytes(index, sys.byteorder), flags


def received_of(payload: bytes) -> tuple[int, int, int] | None:
    """Interface number, queue number and frames of one receive queue's message; None of any other."""
    found = attributes(payload[_GENERIC.size :])
    wanted = (_QSTATS_IFINDEX, _QSTATS_QUEUE, _QSTATS_RX_PACKETS)
    if int.from_bytes(found.get(_QSTATS_TYPE, b"\xff"), sys.byteorder) != _RECEIVE or not found.keys() >= {*wanted}:
        return None
    index, queue, frames = (int.from_bytes(found[number], sys.byteorder) for number in wanted)
    return index, queue, frames


def main(words: Sequence[str]) -> None:
    """Prints flags or frames by the interface's name; exit status 1 and the reason where the kernel does not say."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_GENERIC) as asked:
        asked.settimeout(_TIMEOUT_S)
        asked.bind((0, 0))
        name = _attribute(_FAMILY_NAME, b"netdev\0")
        families = list(_ask(asked, _CONTROL_FAMILY, _REQUEST, _GET_FAMILY, name))
        family = int.from_bytes(attributes(families[0][_GENERIC.size :])[_FAMILY_ID], sys.byteorder)
        names = dict(socket.if_nameindex())
        if "queues" in words:
            scope = _attribute(_QSTATS_SCOPE, struct.pack("=L", _BY_QUEUE))
            queues: dict[str, dict[int, int]] = {}
            for payload in _ask(asked, family, _REQUEST | _DUMP, _QSTATS_GET, scope):
                received = received_of(payload)
                if received is not None and received[0] in names:
                    queues.setdefault(names[received[0]], {})[received[1]] = received[2]
            print(json.dumps(queues))
            return
        devices = [flags_of(payload) for payload in _ask(asked, family, _REQUEST | _DUMP, _DEV_GET, b"")]
    print(json.dumps({names[found[0]]: found[1] for found in devices if found and found[0] in names}))


def _ask(asked: socket.socket, family: int, flags: int, command: int, body: bytes) -> Iterator[bytes]:
    payload = _GENERIC.pack(command, 1, 0) + body
    asked.send(_HEADER.pack(_HEADER.size + len(payload), family, flags, 1, 0) + payload)
    while True:
        for kind, answer in messages(asked.recv(1 << 16)):
            if kind == _DONE:
                return
            if kind == _ERROR:
                raise OSError(-int.from_bytes(answer[:4], sys.byteorder, signed=True), "the kernel does not say")
            yield answer
            if not flags & _DUMP:
                return


def _attribute(number: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, number) + value + bytes(_align(length) - length)


def _align(length: int) -> int:
    return (length + 3) & ~3


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, LookupError) as error:
        sys.exit(str(error))
