"""The Toeplitz hash of receive side scaling, and the queue that an indirection table gives it.

Microsoft, "RSS Hashing Types" and "Verifying the RSS Hash Calculation" (Windows Driver Kit), whose vectors the tests
have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BITS: Final = 32


class Toeplitz:
    """The hash with one key. ValueError for a key of less than 4 bytes more than ``input_bytes``."""

    def __init__(self, key: bytes, input_bytes: int) -> None:
        if len(key) < input_bytes + _BITS // 8:
            raise ValueError(f"a key of {len(key)} bytes is too short for an input of {input_bytes} bytes")
        self._input_bytes = input_bytes
        whole, size = int.from_bytes(key), 8 * len(key)
        windows = [(whole >> (size - _BITS - at)) & 0xFFFF_FFFF for at in range(8 * input_bytes)]
        self._tables = [_of_each_byte(windows[8 * at : 8 * at + 8]) for at in range(input_bytes)]

    def __call__(self, data: bytes) -> int:
        """Returns the 32 bits of the hash. ValueError where the input has another length."""
        if len(data) != self._input_bytes:
            raise ValueError(f"the input has {len(data)} bytes, not {self._input_bytes}")
        value = 0
        for table, byte in zip(self._tables, data, strict=True):
            value ^= table[byte]
        return value


def queue_of(hash_value: int, table: Sequence[int]) -> int:
    """Returns the queue of a hash: its low bits choose the entry of the table, whose size is a power of two."""
    return table[hash_value % len(table)]


def _of_each_byte(windows: Sequence[int]) -> tuple[int, ...]:
    """Returns what each value of a byte adds, whose most significant bit takes the first window."""
    values = []
    for byte in range(256):
        value = 0
        for bit, window in enumerate(windows):
            if byte & (0x80 >> bit):
                value ^= window
        values.append(value)
    return tuple(values)
