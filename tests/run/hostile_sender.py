"""Hostile frames at a live port: a program of its own, run in the DUT's network namespace.

    hostile_sender.py HEARD SENT RUN_KEY TRIAL SECONDS

It listens on the interface HEARD until a frame of the trial comes, and makes of it, for some seconds, frames that it
sends out of the interface SENT, in addition to the trial's own. What each of them is to be counted as, it prints at the
end, as JSON. The signature is computed here anew, from its description in the engine and not with the engine's code.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

BITS_32: Final = (1 << 32) - 1
BITS_64: Final = (1 << 64) - 1
ALL_PROTOCOLS: Final = 3
ETHERNET, IP_LENGTH, ADDRESSES, UDP = 14, 16, 26, 34
SIGNATURE: Final = UDP + 8
SIGNATURE_BYTES: Final = 16
# Little beside the trial's own load, so that no queue on the way is longer for it.
FRAMES_PER_MS: Final = 2
LONGEST_WAIT_S: Final = 120


def scramble(value: int) -> int:
    """SplitMix64's finaliser."""
    mixed = (value + 0x9E3779B97F4A7C15) & BITS_64
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & BITS_64
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & BITS_64
    return mixed ^ mixed >> 31


def fold(left: int, right: int) -> int:
    """Both halves of the product."""
    product = left * right
    return (product ^ product >> 64) & BITS_64


class Signer:
    """Writes the signatures of one trial: check (32 bits), flow (24), time (8), sequence (32), time (32)."""

    def __init__(self, run_key: int, trial: int) -> None:
        self._first = scramble(run_key)
        self._second = scramble(self._first ^ 0x6E696362656E6368)
        mixed = (trial * 0x9E3779B1) & BITS_32
        self._mark = ((mixed ^ mixed >> 16) * 0x9E3779B1) & BITS_32

    def sign(self, flow: int, sequence: int, time_ns: int = 0) -> bytes:
        upper = flow | (time_ns >> 32 & 0xFF) << 24
        lower = sequence | (time_ns & BITS_32) << 32
        inner = fold(lower ^ self._first, upper ^ self._second | 1 << 63)
        outer = fold(inner ^ self._second, 0xE7037ED1A0B428DB ^ upper << 32)
        check = (outer ^ outer >> 32) & BITS_32 ^ self._mark
        return (check | upper << 32 | lower << 64).to_bytes(SIGNATURE_BYTES, "little")

    def is_mine(self, signature: bytes) -> bool:
        _, upper, sequence, time_ns = (int.from_bytes(signature[at : at + 4], "little") for at in (0, 4, 8, 12))
        return signature == self.sign(upper & 0xFFFFFF, sequence, upper >> 24 << 32 | time_ns)


class Hostile:
    """Frames made of one of ours."""

    def __init__(self, ours: bytes, run_key: int, trial: int) -> None:
        self._ours = ours
        self._signer = Signer(run_key, trial)
        self._stranger = Signer(run_key ^ 1, trial)
        self._earlier = Signer(run_key, trial - 1)
        self._random = random.Random(trial)
        foreign, between_ours = "foreign", "corrupted_unattributed"
        self.kinds: list[tuple[str, Callable[[], bytes]]] = [
            (foreign, self._cut_in_headers),
            (between_ours, self._cut_in_signature),
            (between_ours, lambda: self._with_length(IP_LENGTH)),
            (between_ours, lambda: self._with_length(UDP + 4)),
            (between_ours, lambda: bytes(self._unsigned())),
            (foreign, self._to_another_port),
            (foreign, self._of_absurd_flow),
            (foreign, self._of_absurd_sequence),
            (foreign, self._noise),
            ("stale", self._of_the_trial_before),
            ("corrupted_copies", self._with_scrambled_addresses),
        ]

    def _cut_in_headers(self) -> bytes:
        return self._ours[: self._random.randrange(ETHERNET + 1, UDP)]

    def _cut_in_signature(self) -> bytes:
        return self._ours[: self._random.randrange(SIGNATURE, SIGNATURE + SIGNATURE_BYTES)]

    def _signed(self, signature: bytes) -> bytearray:
        return bytearray(self._ours[:SIGNATURE] + signature + self._ours[SIGNATURE + SIGNATURE_BYTES :])

    def _unsigned(self) -> bytearray:
        """With a signature of another key."""
        return self._signed(self._stranger.sign(0, self._random.randrange(1 << 32)))

    def _with_length(self, place: int) -> bytes:
        frame = self._unsigned()
        frame[place : place + 2] = self._random.randrange(1 << 16).to_bytes(2, "big")
        return bytes(frame)

    def _to_another_port(self) -> bytes:
        frame = self._unsigned()
        frame[UDP + 3] ^= 1 << self._random.randrange(8)
        return bytes(frame)

    def _of_absurd_flow(self) -> bytes:
        return bytes(self._signed(self._signer.sign(self._random.randrange(1 << 20, 1 << 24), 0)))

    def _of_absurd_sequence(self) -> bytes:
        """Half of the numbers are before the first one: those were never sent."""
        return bytes(self._signed(self._signer.sign(0, self._random.randrange((1 << 31) + (1 << 24), 1 << 32))))

    def _of_the_trial_before(self) -> bytes:
        return bytes(self._signed(self._earlier.sign(0, self._random.randrange(1 << 16))))

    def _with_scrambled_addresses(self) -> bytes:
        """The signature as it came, behind addresses and ports that no flow has."""
        return self._ours[:ADDRESSES] + self._random.randbytes(12) + self._ours[ADDRESSES + 12 :]

    def _noise(self) -> bytes:
        """Of a type for experiments (IEEE 802.1, 0x88B5)."""
        return self._ours[:12] + b"\x88\xb5" + self._random.randbytes(self._random.randrange(1, 1400))


def first_of_trial(device: str, signer: Signer) -> bytes:
    """A frame of the trial, as it came in at the interface."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as listener:
        listener.bind((device, ALL_PROTOCOLS))
        listener.settimeout(LONGEST_WAIT_S)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            frame, (_, _, kind, *_) = listener.recvfrom(4096)
            if kind != socket.PACKET_OUTGOING and signer.is_mine(frame[SIGNATURE : SIGNATURE + SIGNATURE_BYTES]):
                return frame


def main(heard: str, sent: str, run_key: int, trial: int, seconds: float) -> None:
    hostile = Hostile(first_of_trial(heard, Signer(run_key, trial)), run_key, trial)
    counts = {kind: 0 for kind, _ in hostile.kinds}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind((sent, 0))
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            counted_as, make = hostile.kinds[number % len(hostile.kinds)]
            sender.send(make())
            counts[counted_as] += 1
            number += 1
            if number % FRAMES_PER_MS == 0:
                time.sleep(0.001)
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
