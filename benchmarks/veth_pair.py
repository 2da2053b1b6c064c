"""A veth pair between two namespaces of its own: one end sends, the other counts every frame and drops it."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PREFIX = "nicbench-bench-"
SINK_PROGRAM = """
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int drop(struct xdp_md *context) { return XDP_DROP; }
"""


@dataclass(frozen=True, slots=True)
class VethPair:
    """``sender_namespace`` holds ``sender_device``; what it sends is counted at the other end."""

    sender_namespace: str
    sender_device: str
    sender_mac: str
    sink_mac: str
    sink_process: int
    sink_device: str

    def inside(self, *command: str) -> list[str]:
        """The command, as it runs in the sender's namespace."""
        return ["ip", "netns", "exec", self.sender_namespace, *command]

    def frames_received(self) -> int:
        """Frames that the kernel counted at the sink since the pair was made; the same counter for every sender."""
        for line in Path(f"/proc/{self.sink_process}/net/dev").read_text().splitlines():
            name, _, counters = line.partition(":")
            if name.strip() == self.sink_device:
                return int(counters.split()[1])
        raise RuntimeError(f"{self.sink_device} is gone from the sink's namespace")


def run(*command: str) -> str:
    """Runs to the end; the command and its stderr are in the error."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


@contextmanager
def veth_pair() -> Iterator[VethPair]:
    """Makes both namespaces (no address, no route, nothing forwarded) and removes them at the end."""
    remove_leftovers()
    sender, sink = (f"{PREFIX}{os.getpid()}-{end}" for end in ("sender", "sink"))
    with ExitStack() as undo:
        for namespace in (sender, sink):
            run("ip", "netns", "add", namespace)
            undo.callback(run, "ip", "netns", "delete", namespace)
            quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6; echo 0 >/proc/sys/net/ipv4/ip_forward"
            run("ip", "netns", "exec", namespace, "sh", "-c", quiet)
        run("ip", "link", "add", "bench0", "netns", sender, "type", "veth", "peer", "name", "sink0", "netns", sink)
        attach_drop(sink, "sink0")
        run("ip", "-n", sender, "link", "set", "bench0", "up")
        run("ip", "-n", sink, "link", "set", "sink0", "up")
        # Holds the sink's namespace open for reading /proc/PID/net/dev.
        holder = subprocess.Popen(["ip", "netns", "exec", sink, "sleep", "infinity"])
        undo.callback(holder.wait)
        undo.callback(holder.kill)
        yield VethPair(sender, "bench0", mac(sender, "bench0"), mac(sink, "sink0"), holder.pid, "sink0")


def attach_drop(namespace: str, device: str) -> None:
    """Compiles the sink's program and attaches it in the driver."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "drop.bpf.c"), Path(folder, "drop.bpf.o")
        source.write_text(SINK_PROGRAM)
        compile_bpf(source, program)
        run("ip", "-n", namespace, "link", "set", device, "xdpdrv", "object", str(program), "section", "xdp")


def compile_bpf(source: Path, program: Path) -> None:
    """Compiles a BPF program in C to an object file."""
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    run("clang", "-O2", "-g", "-target", "bpf", include, "-c", str(source), "-o", str(program))


def mac(namespace: str, device: str) -> str:
    """The device's Ethernet address."""
    found = re.search(r"link/ether (\S+)", run("ip", "-n", namespace, "link", "show", device))
    if not found:
        raise RuntimeError(f"{device} has no Ethernet address")
    return found.group(1)


def remove_leftovers() -> None:
    """Namespaces of a benchmark that was killed: their owner's process is gone."""
    for name in re.findall(rf"^({PREFIX}(\d+)-\w+)", run("ip", "netns", "list"), re.MULTILINE):
        if not Path("/proc", name[1]).exists():
            run("ip", "netns", "delete", name[0])
