"""Ports that lie: on the wire, in their counters, and in what they say of their settings.

The wire is two veth pairs whose inner ends hand frames to each other by XDP; what a lie does to a frame is a line of C.
Counters, settings and a card's clock pass through tools that stand before the machine's own.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.commands import run_captured, run_checked, run_tried
from tests.xdp_source import compile_xdp

NEAR, WIRE = f"nb-prove-{os.getpid()}", f"nb-wire-{os.getpid()}"
PORTS = ("pa", "pb")


@dataclass(frozen=True, slots=True)
class Lie:
    """What is untrue, and the findings of which one at least must fail. ``wire`` is C, ``tool`` Python."""

    name: str
    found_by: tuple[str, ...]
    abilities: str
    wire: str = ""
    tool: str = ""


_WIRE = """
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>

struct {{
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
}} counted SEC(".maps");

SEC("xdp")
int lie(struct xdp_md *frame)
{{
    __u8 *data = (void *)(long)frame->data;
    __u8 *end = (void *)(long)frame->data_end;
    __u32 key = 0, length = end - data;
    __u64 *number = bpf_map_lookup_elem(&counted, &key);

    if (!number || data + 60 > end)
        return XDP_DROP;
    __u64 count = __sync_fetch_and_add(number, 1) + 1;
    (void)length;
    (void)count;
    {lie}
    return bpf_redirect({other}, 0);
}}

char _license[] SEC("license") = "GPL";
"""

_TOOL = """#!{python}
import os, re, subprocess, sys
words = sys.argv[1:]
name = os.path.basename(sys.argv[0])
own = {own!r}[name]
state = {state!r}
def real(*arguments):
    return subprocess.run((own, *arguments), capture_output=True, text=True)
def remember(key, value):
    open(os.path.join(state, key), "w").write(value)
def recall(key):
    try:
        return open(os.path.join(state, key)).read()
    except OSError:
        return None
{lie}
os.execv(own, (own, *words))
"""


def _say(when: str, edit: str) -> str:
    """A tool that edits what the real one prints where ``when`` holds of its words."""
    return f"""
if {when}:
    done = real(*words)
    text = done.stdout
    {edit}
    sys.stdout.write(text)
    sys.stderr.write(done.stderr)
    raise SystemExit(done.returncode)
"""


_STATISTICS = 'name == "ip" and "-s" in words and "link" in words'


def _counter(way: str, what: str, change: str) -> str:
    """A kernel's counter that is changed by an expression of ``n``."""
    edit = (
        f'text = re.sub(r\'("{way}":\\{{[^}}]*?"{what}":)(\\d+)\', '
        f"lambda m: m[1] + str((lambda n: int({change}))(int(m[2]))), text)"
    )
    return _say(_STATISTICS, edit)


_RINGS = """
if name == "ethtool" and words[0] == "-g":
    rx = recall("rx") or "256"
    print(f"Ring parameters for {words[1]}:\\nPre-set maximums:\\nRX:\\t\\t4096\\nTX:\\t\\t4096\\n"
          f"Current hardware settings:\\nRX:\\t\\t{rx}\\nTX:\\t\\t256")
    raise SystemExit(0)
if name == "ethtool" and words[0] == "-G":
    KEEP
    raise SystemExit(0)
"""
_COALESCING = """
if name == "ethtool" and words[0] == "-c":
    print(f"Coalesce parameters for {words[1]}:\\nAdaptive RX: off  TX: off\\nrx-usecs: {recall('usecs') or '3'}\\n"
          "rx-frames: 0\\ntx-usecs: 3\\ntx-frames: 0")
    raise SystemExit(0)
if name == "ethtool" and words[0] == "-C":
    KEEP
    raise SystemExit(0)
"""
_PAUSE = """
if name == "ethtool" and words[0] == "-a":
    rx = recall("pause") or "on"
    print(f"Pause parameters for {words[1]}:\\nAutonegotiate:\\toff\\nRX:\\t\\t{rx}\\nTX:\\t\\ton")
    raise SystemExit(0)
if name == "ethtool" and words[0] == "-A":
    remember("pause", words[words.index("rx") + 1] if "rx" in words else "on")
    raise SystemExit(0)
if name == "ip" and words[:2] == ["link", "set"] and words[-1] == "down":
    remember("pause", "off")
"""

_CLOCK = """
if name == "ethtool" and words[0] in ("-T", "--show-time-stamping"):
    print(f"Time stamping parameters for {words[1]}:\\nCapabilities:\\n\\thardware-transmit\\n\\thardware-receive\\n"
          "PTP Hardware Clock: 0\\nHardware Transmit Timestamp Modes:\\n\\toff\\n\\ton\\n"
          "Hardware Receive Filter Modes:\\n\\tnone\\n\\tall")
    raise SystemExit(0)
if name == "phc_ctl":
    import random, time
    asked = int(recall("asked") or 0) + 1
    remember("asked", str(asked))
    offset = int(1e9 + random.gauss(0, 40) + time.monotonic() * 1000 * (PPM) + (STEP if asked % 24 > 11 else 0))
    print(f"phc_ctl[1.0]: offset from CLOCK_REALTIME is {offset}ns")
    raise SystemExit(0)
"""


def _clock(ppm: int, step_ns: int) -> str:
    """A card's clock of this drift, which steps by so much in mid-proof."""
    return _CLOCK.replace("PPM", str(ppm)).replace("STEP", str(step_ns))


HONEST_CLOCK = Lie("has-a-clock", (), "clocks", tool=_clock(12, 0))

LIES = (
    Lie("loses-one-in-ten-thousand", ("drivers.xdp",), "",
        wire="if (count % 10000 == 9999) return XDP_DROP;"),
    Lie("loses-long-frames", ("drivers.xdp",), "", wire="if (length > 1500 && count % 1000 == 7) return XDP_DROP;"),
    Lie("flips-a-bit", ("drivers.xdp",), "", wire="if (count % 5000 == 4999) data[59] ^= 4;"),
    Lie("drops-tagged-frames-now-and-then", ("alterations.tags_xdp",), "alterations",
        wire="if (data[12] == 0x81 && count % 2000 == 1) return XDP_DROP;"),
    Lie("changes-the-tag", ("alterations.vlan_xdp",), "alterations",
        wire="if (data[12] == 0x81 && count % 2000 == 1) data[15] ^= 1;"),
    Lie("cuts-a-byte-of-odd-lengths", ("alterations.odd_lengths_xdp", "drivers.xdp"), "alterations",
        wire="if (length > 120 && length % 2) bpf_xdp_adjust_tail(frame, -1);"),
    Lie("loses-what-the-new-mtu-allows", ("settings.mtu",), "settings",
        wire="if (length > 1600) return XDP_DROP;"),
    Lie("swaps-the-addresses", ("alterations.headers_xdp",), "alterations",
        wire="if (count % 3000 == 2999) { __u8 byte = data[29]; data[29] = data[33]; data[33] = byte; }"),
    Lie("counts-what-it-receives-twice", ("counts.received_xdp",), "counts", tool=_counter("rx", "packets", "2 * n")),
    Lie("counts-what-it-sends-twice", ("counts.sent_xdp",), "counts", tool=_counter("tx", "packets", "2 * n")),
    Lie("forgets-one-in-a-thousand", ("counts.sent_xdp",), "counts", tool=_counter("tx", "packets", "n - n // 1000")),
    Lie("counts-bytes-with-a-preamble", ("counts.received_bytes_xdp",), "counts",
        tool=_counter("rx", "bytes", "n * 1.008")),
    Lie("counts-in-batches", ("counts.received_xdp",), "counts", tool=_counter("rx", "packets", "n // 64 * 64")),
    Lie("reports-an-mtu-that-it-does-not-have", ("settings.mtu",), "settings",
        tool="""
if name == "ip" and words[:2] == ["link", "set"] and "mtu" in words:
    remember("mtu", words[words.index("mtu") + 1])
    raise SystemExit(0)
""" + _say('name == "ip" and "link" in words and "show" in words and recall("mtu")',
           "text = re.sub(r'\"mtu\":\\d+', f'\"mtu\":{recall(\"mtu\")}', text)")),
    Lie("never-returns-a-changed-mtu", ("settings.mtu", "restored.settings"), "settings",
        tool="""
if name == "ip" and words[:2] == ["link", "set"] and "mtu" in words and words[words.index("mtu") + 1] == "1500":
    raise SystemExit(0)
"""),
    Lie("ignores-a-ring-size", ("settings.rings",), "settings", tool=_RINGS.replace("KEEP", "pass")),
    Lie("halves-a-ring-size", ("settings.rings",), "settings",
        tool=_RINGS.replace("KEEP", 'remember("rx", str(int(words[words.index("rx") + 1]) // 2))')),
    Lie("ignores-coalescing", ("settings.coalescing",), "settings", tool=_COALESCING.replace("KEEP", "pass")),
    Lie("coalesces-and-never-goes-back", ("settings.coalescing",), "settings",
        tool=_COALESCING.replace("KEEP", 'recall("usecs") or remember("usecs", words[words.index("rx-usecs") + 1])')),
    Lie("breaks-the-checksum-of-odd-lengths", ("alterations.checksums_xdp",), "alterations",
        wire="if (length % 2 && data[12] == 8 && (data[40] | data[41])) data[41] ^= 1;"),
    Lie("counts-a-queue-twice", ("queues.sum",), "queues",
        tool=_say('name == "ethtool" and "-S" in words',
                  "text = re.sub(r'(rx_queue_0_xdp_packets: )(\\d+)', lambda m: m[1] + str(2 * int(m[2])), text)")),
    Lie("has-a-clock-that-drifts", ("clocks.ptp_first",), "clocks", tool=_clock(200, 0)),
    Lie("has-a-clock-that-steps-back", ("clocks.ptp_first",), "clocks", tool=_clock(12, 1000)),
    Lie("forgets-flow-control-after-a-flap", ("link.settings",), "link", tool=_PAUSE),
)  # fmt: skip


@contextmanager
def cable(lie: Lie | None, folder: Path) -> Iterator[dict[str, str]]:
    """Two ports with the lying wire between them; gives the environment in which tools lie, too."""
    try:
        for name in (NEAR, WIRE):
            run_checked(("ip", "netns", "add", name))
        for port, inner in zip(PORTS, ("ma", "mb"), strict=True):
            _in(NEAR, "ip", "link", "add", port, "type", "veth", "peer", "name", inner, "netns", WIRE)
            _in(NEAR, "ip", "link", "set", port, "up")
            _in(WIRE, "sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{inner}/disable_ipv6")
            _in(WIRE, "ip", "link", "set", "dev", inner, "mtu", "3000", "up")
        for inner, other in (("ma", "mb"), ("mb", "ma")):
            number = int(_in(WIRE, "cat", f"/sys/class/net/{other}/ifindex"))
            (folder / inner).mkdir()
            program = compile_xdp(_WIRE.format(lie=lie.wire if lie else "", other=number), folder / inner)
            _in(WIRE, "ip", "link", "set", "dev", inner, "xdpdrv", "obj", str(program), "sec", "xdp")
        yield _environment(lie, folder)
    finally:
        for name in (NEAR, WIRE):
            run_tried(("ip", "netns", "delete", name))


def _environment(lie: Lie | None, folder: Path) -> dict[str, str]:
    own = {name: shutil.which(name) or "" for name in ("ethtool", "ip", "phc_ctl")}
    (folder / "bin").mkdir()
    (folder / "state").mkdir()
    for name in own:
        tool = folder / "bin" / name
        text = _TOOL.format(python=sys.executable, own=own, state=str(folder / "state"), lie=lie.tool if lie else "")
        tool.write_text(text)
        tool.chmod(0o755)
    return {**os.environ, "NICBENCH_PROOFS": str(folder / "proofs"), "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def _in(name: str, *command: str) -> str:
    return run_captured(("ip", "netns", "exec", name, *command)).stdout
