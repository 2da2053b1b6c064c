"""When the ports of a transmission sent, by their counters, and whether events arrive."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional, Sequence

STEP_S = 0.001
"""So often the counters are read."""

Reading = List[float]
"""``[from_s, to_s, frames]``: when it was asked for, when it was there, and how many frames had been sent."""


class Watch:
    """Reads how many frames each port has sent, in a thread and by a connection of its own, and when that was.

    ``groups`` are the numbers of the packet groups of each port. Of the readings of a port it keeps those that bound
    its transmission: ``none``, the last one before the first frame; ``first``, the first one with frames;
    ``before_last``, the last one before the last frame; ``last``, the first one with all of them.
    """

    def __init__(self, client: Any, groups: Dict[int, Sequence[int]]) -> None:
        self._client = client
        self._groups = groups
        self._numbers = sorted(number for numbers in groups.values() for number in numbers)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()
        self._resting_until = 0.0
        self._error: Optional[Exception] = None
        self.readings: Dict[int, Dict[str, Reading]] = {port: {} for port in groups}

    def begin(self) -> None:
        """Reads the counters once, before anything is sent, and goes on by itself."""
        self._read()
        self._thread.start()

    def rest_until(self, when_s: float) -> None:
        """Reads nothing until then (monotonic)."""
        self._resting_until = when_s

    def end(self) -> None:
        """Reads them once more, and no more."""
        self._ended.set()
        self._thread.join()
        self.check()
        self._read()

    def check(self) -> None:
        """Raises what kept the counters from being read."""
        if self._error is not None:
            raise self._error

    def have_begun(self) -> bool:
        """Whether every port has sent a frame."""
        return all("first" in readings for readings in self.readings.values())

    def last_change_s(self) -> float:
        """When the latest of the counters moved last."""
        return max(readings["last"][1] for readings in self.readings.values())

    def _run(self) -> None:
        while not self._ended.wait(STEP_S):
            if time.monotonic() < self._resting_until:
                continue
            try:
                self._read()
            except Exception as error:
                self._error = error
                return

    def _read(self) -> None:
        before = time.monotonic()
        flows = self._client.get_pgid_stats(self._numbers).get("flow_stats", {})
        after = time.monotonic()
        for port, numbers in self._groups.items():
            sent = sum(int(flows.get(number, {}).get("tx_pkts", {}).get(port, 0)) for number in numbers)
            _note(self.readings[port], [before, after, sent])


def _note(readings: Dict[str, Reading], now: Reading) -> None:
    if now[2] == 0:
        readings["none"] = readings["last"] = readings["newest"] = now
        return
    readings.setdefault("first", now)
    if now[2] != readings["last"][2]:
        readings["before_last"], readings["last"] = readings["newest"], now
    readings["newest"] = now


class EventSocket:
    """A subscription to the server's events, by the library that TRex's client uses for its own."""

    def __init__(self, server: str, port: int) -> None:
        import zmq  # TRex's, which is there once its client was loaded

        self._zmq = zmq
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(f"tcp://{server}:{port}")

    def hears_within(self, seconds: float) -> bool:
        """Whether anything is published in this time."""
        self._socket.setsockopt(self._zmq.RCVTIMEO, round(1000 * seconds))
        try:
            self._socket.recv()
        except self._zmq.Again:
            return False
        return True

    def close(self) -> None:
        """Ends the subscription."""
        self._socket.close(linger=0)
        self._context.term()
