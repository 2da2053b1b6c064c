"""What interfaces dropped, by the kernel's own statistics of them (``struct rtnl_link_stats64``, ``ip -s link``).

Of the errors only those are read that are no parts of others (include/uapi/linux/if_link.h): ``errors`` holds
``over_errors``, ``length_errors``, ``crc_errors``, ``frame_errors``, ``fifo_errors``; ``missed_errors`` is apart.
``rx_nohandler`` are frames for an interface that is not in use (an inactive port of a bond). ``rx_dropped`` also counts
frames that nobody wanted (LLDP where no daemon runs), and ``rx_errors`` what a cable or the DUT spoilt.
"""

from __future__ import annotations

import json
from typing import Any

from nicbench.measure.ledger.base import Count, Echo, Side, Source, Stage, View

_RECEIVE = ("dropped", "missed_errors", "errors", "nohandler")
_TRANSMIT = ("dropped", "errors")
_OUT_OF_ROOM = "missed_errors"


class Links(Source):
    """Both directions of each interface of the path, and of the bridges that they are ports of."""

    kind = "links"

    def script(self, view: View) -> str:
        return "ip -j -s -s link show" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        shown = {str(link["ifname"]): link for link in json.loads(text)} if text.strip() else {}
        return tuple(
            count
            for device in view.devices
            if device in shown
            for count in _device_counts(device, shown[device].get("stats64", {}), view)
        )


def _device_counts(device: str, statistics: dict[str, Any], view: View) -> list[Count]:
    receive, transmit = statistics.get("rx", {}), statistics.get("tx", {})
    # A veth has no card: its queues are its peer's, and are emptied on the CPU of whoever sends.
    by_tester = view.side is not Side.DUT and view.kinds.get(device) != "veth"
    counts = [
        Count(
            key=view.key(device, f"rx_{name}"),
            name=f"{device} rx_{name}",
            # `ip` leaves this one out while it is 0.
            frames=int(receive.get(name, 0)),
            stage=view.stage(Stage.TESTER_RECEIVE, Stage.DUT_RECEIVE),
            place=_receive_place(device, view),
            has_machine_wide=name == "dropped",
            by_tester=by_tester and name == _OUT_OF_ROOM,
        )
        for name in _RECEIVE
        if name in receive or name == "nohandler"
    ]
    for name in _TRANSMIT:
        if name in transmit:
            counts.append(
                Count(
                    key=view.key(device, f"tx_{name}"),
                    name=f"{device} tx_{name}",
                    frames=int(transmit[name]),
                    stage=view.stage(Stage.TESTER_TRANSMIT, Stage.DUT_TRANSMIT),
                    place=_transmit_place(device, view),
                    echo=_echo(device, view) if name == "dropped" else None,
                    by_tester=by_tester,
                )
            )
    return counts


def _echo(device: str, view: View) -> Echo | None:
    """A veth hands a frame to its peer's side itself, and counts what is dropped there too, unless that side polls."""
    if view.kinds.get(device) != "veth" or device not in view.peers:
        return None
    side, peer = view.peers[device]
    key = Side(side)
    return Echo(of=f"{key}: {peer} rx_dropped", unless=f"{key}: {peer} polled")


def _receive_place(device: str, view: View) -> str:
    kind = "bridge" if view.kinds.get(device) == "bridge" else "receive side of"
    return f"{view.side}, {kind} {device}"


def _transmit_place(device: str, view: View) -> str:
    """A veth has no ring of its own to send from: what it cannot send is what its peer's queue has no room for."""
    if view.kinds.get(device) == "veth" and device in view.peers:
        side, peer = view.peers[device]
        return f"{side}, queue of {peer} (veth peer of {device})"
    return f"{view.side}, transmit side of {device}"
