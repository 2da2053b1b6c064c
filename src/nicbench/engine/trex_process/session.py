"""One connection to a TRex server, by the library of the user's installation."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

from .library import RefusedError, Stream, load_api, make_stream, plain, python_version, words_of
from .watch import STEP_S, EventSocket, Watch

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

        With ``wait_on_traffic`` and ``stop`` the server ceases to count by groups. So ``later``, what they have after
        the settle time, is read before; after a stop it is None.
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
