"""What is asked of the library of a TRex installation itself: to load it, and streams by its classes."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any, Dict, List

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
