"""A switch of two ports in user space that obeys and sends PFC and PAUSE frames, with queues of known length.

It is run by the Python of the DUT's host, and needs nothing but Python's own modules. It reads its settings, one line
of JSON, and prints `forwarding`; each line `stats` is answered by its counters. A frame's class is its DSCP divided by
eight (a class selector, RFC 2474 section 4.2.2), 0 without IP. Bytes are with FCS.
"""

import json
import os
import select
import socket
import sys
import time
from collections import deque
from typing import Any

EVERY_PROTOCOL, MAC_CONTROL = 0x0003, 0x8808
PAUSE, PFC = 0x0001, 0x0101
PAUSE_ADDRESS = bytes.fromhex("0180c2000001")
CLASSES, QUANTUM_BITS, MOST_QUANTA = 8, 512, 65_535
FCS_BYTES, LINE_OVERHEAD_BYTES, SMALLEST_FRAME = 4, 24, 60
RECEIVE_BUFFER_BYTES = 1 << 25
AT_ONCE = 64
LONGEST_WAIT_S = 0.05
FORCE_RECEIVE_BUFFER = 33  # SO_RCVBUFFORCE


def class_of(frame: bytes) -> int:
    """Returns the class of a frame."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == 0x0800 and len(frame) > 15:
        return frame[15] >> 5
    if kind == 0x86DD and len(frame) > 15:
        return (frame[14] & 0x0F) >> 1
    return 0


def pause_frame(mac: bytes, lossless: int | None, quanta: int) -> bytes:
    """Returns a PFC frame that pauses one class, or a PAUSE frame without one."""
    if lossless is None:
        body = PAUSE.to_bytes(2, "big") + quanta.to_bytes(2, "big")
    else:
        times = b"".join((quanta if one == lossless else 0).to_bytes(2, "big") for one in range(CLASSES))
        body = PFC.to_bytes(2, "big") + (1 << lossless).to_bytes(2, "big") + times
    return (PAUSE_ADDRESS + mac + MAC_CONTROL.to_bytes(2, "big") + body).ljust(SMALLEST_FRAME, b"\0")


def pauses_of(frame: bytes) -> dict[int, int] | None:
    """Returns the quanta by class of a pause frame; None for any other frame."""
    if int.from_bytes(frame[12:14], "big") != MAC_CONTROL:
        return None
    words = [int.from_bytes(frame[at : at + 2], "big") for at in range(14, min(len(frame), 34), 2)]
    if words and words[0] == PAUSE:
        return dict.fromkeys(range(CLASSES), words[1])
    if len(words) == 10 and words[0] == PFC:
        return {one: words[2 + one] for one in range(CLASSES) if words[1] >> one & 1}
    return {}


class Queue:
    """The frames of a class that wait at an output, and what its watchdog knows. Times are in ns."""

    def __init__(self, number: int, settings: dict[str, Any]) -> None:
        self.number, self.settings = number, settings
        self.is_lossless = number in settings["lossless"]
        self.frames: deque[bytes] = deque()
        self.bytes = 0
        self.paused_until = 0  # by the frames of the neighbour
        self.last_pause = self.moved = 0
        self.storm = False
        self.xoff_sent_at: int | None = None  # the neighbour at the input is paused since then
        self.counts = {"full": 0, "watchdog": 0, "storms": 0}

    def take(self, frame: bytes, now: int) -> None:
        """Queues a frame, or drops it if the queue is full."""
        settings, size = self.settings, len(frame) + FCS_BYTES
        watchdog = settings["watchdog"] or {}
        room = settings["xoff"] + settings["head_room"] if self.is_lossless else settings["buffer"]
        if self.storm and watchdog.get("action") == "drop":
            self.counts["watchdog"] += 1
        elif self.bytes + size > room:
            self.counts["full"] += 1
        else:
            if not self.frames:
                self.moved = now
            self.frames.append(frame)
            self.bytes += size

    def pause(self, quanta: int, now: int) -> None:
        """Obeys a pause frame of the neighbour."""
        if not self.settings["obeys"]:
            return
        self.paused_until = now + quanta * QUANTUM_BITS * 1_000_000_000 // self.settings["rate"]
        if quanta:
            self.last_pause = now

    def watch(self, now: int) -> None:
        """Finds and ends a storm of pause frames."""
        watchdog = self.settings["watchdog"]
        if watchdog is None or not self.is_lossless:
            return
        if self.storm and now - self.last_pause >= watchdog["restore_ns"]:
            self.storm = False
        elif not self.storm and self.frames and now < self.paused_until and now - self.moved >= watchdog["detect_ns"]:
            self.storm = True
            self.counts["storms"] += 1
            if watchdog["action"] == "drop":
                self.counts["watchdog"] += len(self.frames)
                self.frames.clear()
                self.bytes = 0

    def may_send(self, now: int) -> bool:
        """Says whether a frame waits that no pause holds back."""
        return bool(self.frames) and (now >= self.paused_until or self.storm)

    def next_event(self, now: int) -> int | None:
        """Returns when something changes without a frame; None where nothing does."""
        times = []
        watchdog = self.settings["watchdog"] if self.is_lossless else None
        if self.frames and now < self.paused_until and not self.storm:
            times.append(self.paused_until)
            if watchdog is not None:
                times.append(self.moved + watchdog["detect_ns"])
        if self.storm and watchdog is not None:
            times.append(self.last_pause + watchdog["restore_ns"])
        if self.xoff_sent_at is not None:
            times.append(self.xoff_sent_at + self.settings["refresh_ns"])
        return min(times) if times else None


class Port:
    """An interface, its queues, and when its line is free again."""

    def __init__(self, device: str, mac: str, settings: dict[str, Any]) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
        self.socket.setsockopt(socket.SOL_SOCKET, FORCE_RECEIVE_BUFFER, RECEIVE_BUFFER_BYTES)
        self.socket.bind((device, EVERY_PROTOCOL))
        self.socket.setblocking(False)
        self.device, self.mac, self.settings = device, bytes.fromhex(mac.replace(":", "")), settings
        self.queues = [Queue(number, settings) for number in range(CLASSES)]
        self.free_at = self.turn = 0
        self.counts = {"received": 0, "sent": 0, "pauses_received": 0, "pauses_sent": 0, "send_failed": 0}

    def receive(self, other: "Port") -> None:
        """Takes what came in, for the other port; pause frames are of this port's own output."""
        for _ in range(AT_ONCE):
            try:
                frame, address = self.socket.recvfrom(65_535)
            except BlockingIOError:
                return
            if address[2] == socket.PACKET_OUTGOING:
                continue
            now = time.monotonic_ns()
            pauses = pauses_of(frame)
            if pauses is None:
                self.counts["received"] += 1
                other.queues[class_of(frame)].take(frame, now)
                continue
            self.counts["pauses_received"] += 1
            for number, quanta in pauses.items():
                self.queues[number].pause(quanta, now)

    def put(self, frame: bytes) -> None:
        """Sends a frame; what the interface refuses is lost."""
        try:
            self.socket.send(frame)
        except OSError:
            self.counts["send_failed"] += 1

    def send(self, now: int) -> None:
        """Sends what the line has time for, the classes in turn."""
        while self.free_at <= now:
            ready = [queue for queue in self.queues if queue.may_send(now)]
            if not ready:
                self.free_at = max(self.free_at, now - self.settings["late_ns"])
                return
            queue = min(ready, key=lambda one: (one.number - self.turn) % CLASSES)
            self.turn = (queue.number + 1) % CLASSES
            frame = queue.frames.popleft()
            queue.bytes -= len(frame) + FCS_BYTES
            queue.moved = now
            self.put(frame)
            self.counts["sent"] += 1
            bits = 8 * (max(len(frame), SMALLEST_FRAME) + LINE_OVERHEAD_BYTES)
            began = max(self.free_at, now - self.settings["late_ns"])
            self.free_at = began + bits * 1_000_000_000 // self.settings["rate"]

    def hold_back(self, queues: list[Queue], now: int) -> None:
        """Pauses the neighbour of this input, or lets it go on, by what waits at the other output."""
        for queue in queues:
            if not queue.is_lossless:
                continue
            if queue.bytes > self.settings["xoff"]:
                due = queue.xoff_sent_at is None or now - queue.xoff_sent_at >= self.settings["refresh_ns"]
                if due:
                    self._pause(queue, MOST_QUANTA, now)
            elif queue.xoff_sent_at is not None and queue.bytes <= self.settings["xon"]:
                self._pause(queue, 0, now)

    def _pause(self, queue: Queue, quanta: int, now: int) -> None:
        queue.xoff_sent_at = now if quanta else None
        self.put(pause_frame(self.mac, None if self.settings["whole_link"] else queue.number, quanta))
        self.counts["pauses_sent"] += 1


def statistics(ports: list[Port]) -> dict[str, dict[str, int]]:
    """Returns the counters of each port and of its queues."""
    return {
        port.device: {
            **port.counts,
            **{name: sum(queue.counts[name] for queue in port.queues) for name in ("full", "watchdog", "storms")},
        }
        for port in ports
    }


def main() -> None:
    """Forwards until its input ends."""
    settings = json.loads(sys.stdin.readline())
    if settings["cpus"]:
        os.sched_setaffinity(0, settings["cpus"])
    ports = [Port(device, mac, settings) for device, mac in settings["ports"]]
    first, second = ports
    print("forwarding", flush=True)
    while True:
        now = time.monotonic_ns()
        for here, there in ((first, second), (second, first)):
            here.receive(there)
        now = time.monotonic_ns()
        times = []
        for here, there in ((first, second), (second, first)):
            for queue in here.queues:
                queue.watch(now)
            here.send(now)
            there.hold_back(here.queues, now)
            times += [one for queue in here.queues if (one := queue.next_event(now)) is not None]
            if any(queue.may_send(now) for queue in here.queues):
                times.append(here.free_at)
        wait_s = LONGEST_WAIT_S if not times else min(LONGEST_WAIT_S, max(0.0, (min(times) - now) / 1e9))
        ready, _, _ = select.select([first.socket, second.socket, sys.stdin], [], [], wait_s)
        if sys.stdin in ready:
            line = sys.stdin.readline()
            if not line:
                return
            print(json.dumps(statistics(ports)), flush=True)


if __name__ == "__main__":
    main()
