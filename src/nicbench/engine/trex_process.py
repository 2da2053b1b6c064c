"""TRex's Python client in a process of its own: a request is a line of JSON on stdin, its reply one on stdout.

It runs in whichever Python the user's TRex release supports (3.7 and later), and so imports nothing of nicbench. TRex
brings libraries of its own, old versions among them, which replace others of the same names only here.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import re
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

# What is asked of the library of a TRex installation itself: to load it, and streams by its classes.

Stream = Dict[str, Any]
"""Keys: ``transmit`` (port), ``packet`` (hexadecimal), ``program`` (see ``make_stream``), ``frames_per_s``, ``frames``
(None: until the time is over), ``group``, ``stamped``."""

# The places of the client in a release, in a clone of trex-core, and in the client package of a release.
CLIENT_FOLDERS = (
    "automation/trex_control_plane/interactive",
    "scripts/automation/trex_control_plane/interactive",
    "interactive",
    ".",
)
_API = "trex/stl/api.py"
_IP_OFFSET = 14  # behind the Ethernet header
_MOST_CORES = 64  # that send for one pair of ports; TRex has fewer


class RefusedError(Exception):
    """What cannot be done. By its ``kind`` the other side chooses its advice; ``details`` are plain data."""

    def __init__(self, kind: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details


def load_api(folder: str) -> Any:
    """``trex.stl.api`` of the installation in ``folder``."""
    given = Path(folder).expanduser()
    places = [given / name for name in CLIENT_FOLDERS]
    found = next((place for place in places if (place / _API).is_file()), None)
    if found is None:
        raise RefusedError("absent", f"there is no TRex client in {given}: it has no {CLIENT_FOLDERS[0]}/{_API}")
    sys.path.insert(0, str(found))
    try:
        return importlib.import_module("trex.stl.api")
    except (Exception, SystemExit) as error:  # it exits where its libraries do not fit
        message = f"the TRex client in {found} does not load in Python {python_version()}: {words_of(error)}"
        raise RefusedError("load", message) from error


def python_version() -> str:
    """The version of this interpreter."""
    return ".".join(map(str, sys.version_info[:3]))


def words_of(error: object) -> str:
    """The message of a TRex error on one line, without the colours of its console and other steering characters."""
    text = re.sub(r"\x1b\[[0-9;]*m|[\x00-\x08\x0e-\x1f\x7f-\x9f]", "", str(error))
    return " ".join(text.split()) or type(error).__name__


def make_stream(api: Any, stream: Stream) -> Any:
    """The stream as an ``STLStream``, with both MAC addresses from the frame, not from the port's configuration.

    Its ``program`` has an entry for each address that differs between flows: offset in the frame, first value, count.
    They are digits: each counts on when the one before it begins anew (``next_var``), or there would be fewer flows.
    """
    digits = stream["program"]
    # Cores that share the values of a digit step over as many as there are cores. Where that is more than its values,
    # TRex forgets to carry, so each core then counts through all flows by itself.
    is_shared = len(digits) == 1 or digits[0][2] > _MOST_CORES
    variables, writes = [], []
    for number, (offset, first, count) in enumerate(digits):
        following = {} if number + 1 == len(digits) else {"next_var": f"address{number + 1}"}
        name, last = f"address{number}", first + count - 1
        variables.append(
            api.STLVmFlowVar(
                name=name,
                min_value=first,
                max_value=last,
                size=4,
                op="inc",
                split_to_cores=is_shared and number == 0,
                **following,
            )
        )
        writes.append(api.STLVmWrFlowVar(fv_name=name, pkt_offset=offset))
    program: List[Any] = variables + writes
    program.append(api.STLVmFixIpv4(offset=_IP_OFFSET))
    frames, rate = stream["frames"], stream["frames_per_s"]
    counted = (api.STLFlowLatencyStats if stream["stamped"] else api.STLFlowStats)(pg_id=stream["group"])
    return api.STLStream(
        packet=api.STLPktBuilder(pkt_buffer=bytes.fromhex(stream["packet"]), vm=api.STLScVmRaw(program)),
        mode=api.STLTXCont(pps=rate) if frames is None else api.STLTXSingleBurst(pps=rate, total_pkts=frames),
        flow_stats=counted,
        mac_src_override_by_pkt=True,
        mac_dst_override_mode=1,
    )


def plain(value: Any) -> Any:
    """What JSON can hold; None for a statistic that TRex does not have, which it writes as an object."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) else None


# When the ports of a transmission sent, by their counters, and whether events arrive.

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


# One connection to a TRex server, by the library of the user's installation.

_BEFORE_END_S = 0.05
"""Time before the end of a transmission from which on its counters are read."""
_QUIET_S = 0.05
"""A port whose counter has not moved for this time has sent its last frame."""
_EVENT_WITHIN_S = 3.0
# TRex reports the utilisation of its cores over the last second.
_CPU_WINDOW_S = 1.0
_KNOWN_OF_A_PORT = ("link", "speed", "src_mac", "prom", "prom_supported", "driver", "description")
_LINK = re.compile(r"port (\d+) attributes changed.*\blink:", re.IGNORECASE)
_TAKEN = re.compile(r"port (\d+) was (?:forcely |forcibly )?taken by (.+)", re.IGNORECASE)

Fields = Dict[str, Any]


class Session:
    """Answers requests. Each method that begins with ``do_`` is a command; it gives the fields of its reply.

    ``tell`` writes an event; a transmission ends early once ``interrupted`` is set.
    """

    def __init__(self, tell: Callable[[Fields], None], interrupted: threading.Event) -> None:
        self._tell = tell
        self._interrupted = interrupted
        self._api: Any = None
        self._client: Any = None
        self._watcher: Any = None
        self._address: Fields = {}

    def explain(self, error: Exception) -> Fields:
        """An error as plain data, with who took which port meanwhile, as far as the server told."""
        if isinstance(error, RefusedError):
            return {"kind": error.kind, "message": str(error), **error.details}
        takers: Dict[str, str] = {}
        # Not only a TRexError: the client fails in its own asserts and lookups too (trex-core 326).
        if self._client is not None:
            _try(lambda: takers.update(self._told(range(256))[1]))
        return {"kind": "taken" if takers else "trex", "message": words_of(error), "takers": takers}

    def do_load(self, client: str) -> Fields:
        """Loads the installation in the folder ``client``."""
        self._api = load_api(client)
        return {"python": python_version()}

    def do_connect(self, server: str, sync_port: int, async_port: int, owner: str) -> Fields:
        """Connects as the user ``owner``; gives the version of the server and the numbers of its ports."""
        self._address = {"server": server, "sync_port": sync_port, "async_port": async_port}
        self._client = self._connected(owner)
        version = self._client.get_server_version()
        known = {"version": str(version.get("version")), "mode": str(version.get("mode"))}
        return {**known, "ports": list(self._client.get_all_ports())}

    def do_look(self, ports: Sequence[int]) -> Fields:
        """What is known of the ports, in this order."""
        infos = self._client.get_port_info(list(ports))
        return {"ports": [{name: plain(info.get(name)) for name in _KNOWN_OF_A_PORT} for info in infos]}

    def do_take(self, ports: List[int], promiscuous: List[int], force: bool) -> Fields:
        """Acquires the ports, makes some promiscuous, and waits for an event: without them no end would be noticed."""
        events = EventSocket(self._address["server"], self._address["async_port"])
        try:
            try:
                self._client.acquire(ports, force=force)
            except Exception as error:
                raise RefusedError("busy", words_of(error)) from error
            if not events.hears_within(_EVENT_WITHIN_S):
                self._client.release(ports)
                raise RefusedError("events", f"no event came within {_EVENT_WITHIN_S:g} s")
        finally:
            events.close()
        self._client.stop(ports)
        self._client.set_service_mode(ports, False)
        self._client.remove_all_streams(ports)
        if promiscuous:
            self._client.set_port_attr(promiscuous, promiscuous=True)
        self._watcher = self._connected("nicbench-watch")
        return {}

    def do_learn(self, ports: List[int], streams: List[Stream], send_within_s: float, settle_s: float) -> Fields:
        """Sends the frames of the streams; gives TRex's statistics of them ``settle_s`` later."""
        client, senders = self._client, _senders(streams)
        self._load(ports, streams)
        client.clear_stats(ports)
        client.start(senders, mult="1", duration=-1, force=True)
        self._has_ended(senders, send_within_s)
        self._sleep(settle_s)
        told = self._statistics(ports, streams)
        client.wait_on_traffic(senders, timeout=_EVENT_WITHIN_S, rx_delay_ms=0)
        return told

    def do_trial(
        self,
        ports: List[int],
        streams: List[Stream],
        duration_s: float,
        allowance_s: float,
        drain_s: float,
        settle_s: float,
    ) -> Fields:
        """One transmission: gives TRex's statistics, when its ports sent, and what the server told meanwhile.

        One that has not ended ``allowance_s`` after its time is stopped. TRex sends every frame even where its queues
        are full, only later, so that the load falls silently (trex-core 442). Frames are counted until ``drain_s``
        after the end, and once more ``settle_s`` later (``later``).
        """
        client, senders = self._client, _senders(streams)
        self._load(ports, streams)
        client.clear_stats(ports)
        client.clear_events()
        down = self._down(ports)
        watch = Watch(
            self._watcher,
            {port: [one["group"] for one in streams if one["transmit"] == port] for port in senders},
        )
        watch.begin()
        try:
            # With force, for TRex refuses 100 % of line rate where rounding makes it a bit more; links were checked.
            client.start(senders, mult="1", duration=duration_s, force=True)
            cpu_shares, stopped = self._follow(watch, senders, duration_s, allowance_s)
        finally:
            watch.end()
        told = self._wait_for_last(ports, streams, drain_s, settle_s, stopped)
        changed, takers = self._told(ports)
        return {
            **told,
            "sent": {port: readings.plain() for port, readings in watch.readings.items()},
            "cpu_shares": cpu_shares,
            "links_changed": sorted(down | changed | self._down(ports)),
            "takers": takers,
        }

    def do_give_back(self, ports: List[int], promiscuous: List[int]) -> Fields:
        """Stops and releases what is still ours of the ports, and disconnects; also where the server is gone."""
        client, self._client = self._client, None
        if client is not None:
            mine = [port for port in ports if port in client.get_acquired_ports()]
            _release(client, mine, [port for port in promiscuous if port in mine])
            _try(client.disconnect)
        if self._watcher is not None:
            _try(self._watcher.disconnect)
        return {}

    def do_free(self, ports: List[int], promiscuous: List[int], owner: str) -> Fields:
        """Takes ports from ``owner``, who is gone, and releases them; gives those that others hold by now."""
        held = [self._client.get_port(port).get_owner() for port in ports]
        ours = [port for port, holder in zip(ports, held) if holder == owner]
        if ours:
            self._client.acquire(ours, force=True)
            _release(self._client, ours, [port for port in promiscuous if port in ours])
        _try(self._client.disconnect)
        return {"freed": ours, "others": sorted({str(holder) for holder in held if holder and holder != owner})}

    def _connected(self, owner: str) -> Any:
        try:
            # Another verbose_level would have it write to stdout.
            client = self._api.STLClient(username=owner, verbose_level="none", **self._address)
            client.connect()
        except Exception as error:
            said = words_of(error)
            if "mismatch" in said.lower():
                raise RefusedError("mismatch", said, server=self._probed()) from error
            raise RefusedError("events" if "no data flow" in said else "unreachable", said) from error
        return client

    def _probed(self) -> Optional[str]:
        """The version of a server that this client cannot work with, as far as it tells."""
        try:
            client = self._api.STLClient(verbose_level="none", **self._address)
            return str(client.probe_server().get("version"))
        except Exception:
            return None

    def _follow(
        self, watch: Watch, senders: List[int], duration_s: float, allowance_s: float
    ) -> Tuple[List[float], bool]:
        """Waits for the end; gives the shares of TRex's cores, where it can know them, and whether it is late."""
        latest = time.monotonic() + _EVENT_WITHIN_S
        while not watch.have_begun() and time.monotonic() < latest:
            watch.check()
            self._sleep(STEP_S)
        begun = time.monotonic()
        self._tell({"event": "begun"})
        watch.rest_until(begun + duration_s - _BEFORE_END_S)
        shares: List[float] = []
        if duration_s >= 2 * _CPU_WINDOW_S:
            self._sleep(duration_s - _CPU_WINDOW_S / 2)
            known = self._client.get_stats(self._client.get_acquired_ports()).get("global", {})
            values = [known.get(name) for name in ("cpu_util", "rx_cpu_util")]
            shares = [value / 100.0 for value in values if isinstance(value, (int, float))]
        self._sleep(begun + duration_s - time.monotonic())
        deadline = begun + duration_s + allowance_s
        # The event of an end comes late: that the counters stand still tells it too.
        while self._is_active(senders):
            watch.check()
            now = time.monotonic()
            if now >= deadline and now >= watch.last_change_s() + _QUIET_S:
                break
            if now >= deadline + _QUIET_S:
                return shares, True
            self._sleep(STEP_S)
        return shares, False

    def _wait_for_last(
        self, ports: List[int], streams: List[Stream], drain_s: float, settle_s: float, stop: bool
    ) -> Fields:
        """Waits for the end, or stops, and for the last frames; gives the statistics, and whether it was stopped.

        With ``wait_on_traffic`` and ``stop`` the server ceases to count by groups. So ``later``, their counts after the
        settle time, are read before; a stop leaves ``later`` null.
        """
        client, senders = self._client, _senders(streams)
        if stop or not self._has_ended(senders, _EVENT_WITHIN_S):
            client.stop(senders, rx_delay_ms=round(1000 * drain_s))
            told = {**self._statistics(ports, streams), "later": None, "stopped": True}
            self._sleep(settle_s)
            return told
        self._sleep(drain_s)
        told = self._statistics(ports, streams)
        self._sleep(settle_s)
        later = self._groups(streams)
        client.wait_on_traffic(senders, timeout=_EVENT_WITHIN_S, rx_delay_ms=0)
        return {**told, "later": later, "stopped": False}

    def _has_ended(self, senders: List[int], within_s: float) -> bool:
        """Waits for the event of the end; whether it came in time."""
        latest = time.monotonic() + within_s
        while self._is_active(senders):
            if time.monotonic() >= latest:
                return False
            self._sleep(STEP_S)
        return True

    def _statistics(self, ports: List[int], streams: List[Stream]) -> Fields:
        return {"statistics": plain(self._client.get_stats(ports)), "groups": self._groups(streams)}

    def _groups(self, streams: List[Stream]) -> Any:
        return plain(self._client.get_pgid_stats([stream["group"] for stream in streams]))

    def _sleep(self, seconds: float) -> None:
        if self._interrupted.wait(max(0.0, seconds)):
            raise RefusedError("interrupted", "the run ends")

    def _is_active(self, senders: List[int]) -> bool:
        return bool(set(senders) & set(self._client.get_active_ports()))

    def _told(self, ports: Sequence[int]) -> Tuple[Set[int], Dict[str, str]]:
        """The ports whose link changed, by the server's events, and who took which port from us."""
        changed, takers = set(), {}
        for event in self._client.get_events():
            text = words_of(event.msg)
            link, taken = _LINK.search(text), _TAKEN.search(text)
            if link and int(link.group(1)) in ports:
                changed.add(int(link.group(1)))
            if taken and int(taken.group(1)) in ports and event.ev_type == "warning":
                takers[taken.group(1)] = taken.group(2).strip("'\" ")
        return changed, takers

    def _down(self, ports: List[int]) -> Set[int]:
        infos = self._client.get_port_info(ports)
        return {port for port, info in zip(ports, infos) if info.get("link") == "DOWN"}

    def _load(self, ports: List[int], streams: List[Stream]) -> None:
        """Replaces all streams of the ports by these."""
        self._client.remove_all_streams(ports)
        for stream in streams:
            self._client.add_streams([make_stream(self._api, stream)], ports=[stream["transmit"]])


def _senders(streams: List[Stream]) -> List[int]:
    return sorted({stream["transmit"] for stream in streams})


def _release(client: Any, ports: List[int], promiscuous: List[int]) -> None:
    if not ports:
        return
    _try(lambda: client.stop(ports))
    _try(lambda: client.remove_all_streams(ports))
    if promiscuous:
        _try(lambda: client.set_port_attr(promiscuous, promiscuous=False))
    _try(lambda: client.release(ports))


def _try(work: Callable[[], object]) -> None:
    """Tries it: the server may be gone, and what follows is tried all the same."""
    with contextlib.suppress(Exception):
        work()


# The process: reads requests, has the session answer them, and writes the replies.


def main() -> None:
    """Answers requests until ``close``, or the end of stdin."""
    # What libraries print must not stand between the replies.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    requests: queue.Queue[Dict[str, Any]] = queue.Queue()
    interrupted = threading.Event()

    def write(message: Dict[str, Any]) -> None:
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    def read() -> None:
        for line in sys.stdin:
            request = json.loads(line)
            if request["command"] in ("give_back", "close"):
                interrupted.set()
            requests.put(request)
        interrupted.set()
        requests.put({"id": None, "command": "close"})

    threading.Thread(target=read, daemon=True).start()
    session = Session(write, interrupted)
    while True:
        request = requests.get()
        number, command = request.pop("id"), request.pop("command")
        if command == "close":
            write({"id": number, "ok": True})
            os._exit(0)  # threads of the client would keep the interpreter from ending
        try:
            write({"id": number, "ok": True, **getattr(session, "do_" + command)(**request)})
        except Exception as error:
            write({"id": number, "ok": False, "error": session.explain(error)})
