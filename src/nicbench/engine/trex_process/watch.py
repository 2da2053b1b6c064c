"""When the ports of a transmission sent, by their counters, and whether events arrive."""

from __future__ import annotations

import threading
import time
from typing import Any, Dict, List, Optional, Sequence

STEP_S = 0.001
"""Interval in which the counters are read around the beginning and the end."""
_SELDOM_S = 0.05
"""Interval in which they are read in between, in case the server does not answer at the end."""

_KEPT = 10
"""Number of readings that are kept at the beginning and at the end: the server answers some of them late."""

Reading = List[float]
"""``[from_s, to_s, frames]``: when it was asked for, when it was there, and how many frames had been sent."""


class Readings:
    """The readings of one port that bound its transmission.

    ``none`` is the last one before the first frame, ``beginning`` are the first with frames, ``ending`` the latest
    without the last frame, and ``last`` is the first with all of them.
    """

    def __init__(self) -> None:
        self.none: Optional[Reading] = None
        self.beginning: List[Reading] = []
        self.ending: List[Reading] = []
        self.last: Optional[Reading] = None
        self._newest: Optional[Reading] = None

    def add(self, now: Reading) -> None:
        """Adds the newest."""
        if now[2] == 0:
            self.none = now
            return
        if len(self.beginning) < _KEPT:
            self.beginning.append(now)
        if self.last is None or now[2] != self.last[2]:
            if self._newest is not None:
                self.ending = [*self.ending, self._newest][-_KEPT:]
            self.last = now
        self._newest = now

    def plain(self) -> Dict[str, Any]:
        """As plain data."""
        return {"none": self.none, "beginning": self.beginning, "ending": self.ending, "last": self.last}


class Watch:
    """Reads how many frames each port has sent, and when that was: in a thread and by a connection of its own.

    ``groups`` are the numbers of the packet groups of each port, ``readings`` what is kept of each.
    """

    def __init__(self, client: Any, groups: Dict[int, Sequence[int]]) -> None:
        self._client = client
        self._groups = groups
        self._numbers = sorted(number for numbers in groups.values() for number in numbers)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ended = threading.Event()
        self._resting_until = 0.0
        self._error: Optional[Exception] = None
        self.readings = {port: Readings() for port in groups}

    def begin(self) -> None:
        """Reads the counters once, before anything is sent, and goes on by itself."""
        self._read()
        self._thread.start()

    def rest_until(self, when_s: float) -> None:
        """Reads them seldom until then (monotonic)."""
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
        return all(readings.last is not None for readings in self.readings.values())

    def last_change_s(self) -> float:
        """When the latest of the counters moved last; 0 where none did."""
        return max(readings.last[1] if readings.last else 0.0 for readings in self.readings.values())

    def _run(self) -> None:
        while not self._ended.wait(min(_SELDOM_S, max(STEP_S, self._resting_until - time.monotonic()))):
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
            self.readings[port].add([before, after, sent])


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
