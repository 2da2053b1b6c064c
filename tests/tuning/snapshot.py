"""A whole machine as JSON, to be compared: what a run changes, and whether all of it is as before afterwards.

    python3 tests/tuning/snapshot.py > before.json

It uses nothing of nicbench, so that it cannot share a mistake with it: files of /proc and /sys, and what `ip`, `tc`,
`nft` and `ethtool` say. Needs root. Values that move by themselves are left out by name, each with its reason.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

VOLATILE = {
    r"fs/(dentry-state|file-nr|inode-nr|inode-state|aio-nr|dquot|quota/.*|mount-nr)": "counts of what is in use",
    r"kernel/random/.*": "random numbers, and how many bits are at hand",
    r"kernel/(ns_last_pid|pty/nr|.*_next_id)": "the last process, the number of terminals, the next id",
    r"kernel/(perf_event_max_sample_rate|perf_cpu_time_max_percent)": "the kernel lowers them itself when it is busy",
    r"kernel/(tainted|hung_task_detect_count|keys/.*)": "what the kernel noticed, and keys that end",
    r"net/netfilter/nf_conntrack_(count|buckets)": "what is in use, and how many places there are for it",
    r"net/ipv[46]/route/flush": "written only",
    r"net/ipv4/tcp_fastopen_key": "a key that is drawn when it is first read",
    r"net/core/netdev_rss_key": "a key that is drawn when it is first used",
    r"vm/(stat_refresh|compact_memory|drop_caches)": "what they do when they are read or written is all they are for",
    r"net/(ipv4|ipv6)/(conf|neigh)/.*": "of each interface that is there; the links themselves are in the snapshot",
}
_VOLATILE = re.compile("|".join(f"({pattern})" for pattern in VOLATILE))

# Of links, what counts frames or tells the time.
VOLATILE_LINK_KEYS = {"stats", "stats64", "tstats", "ifindex", "link_index", "bytecode", "gc_timer", "hello_timer"}

FILES = (
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_*governor",
    "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference",
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_m*_freq",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpu*/cpuidle/state*/disable",
    "/sys/devices/system/cpu/cpu*/online",
    "/sys/devices/system/cpu/cpu*/power/pm_qos_resume_latency_us",
    "/sys/kernel/mm/transparent_hugepage/*enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/hugepages/*/nr_*hugepages",
    "/sys/devices/system/node/node*/hugepages/*/nr_hugepages",
    "/sys/block/*/queue/read_ahead_kb",
    "/sys/class/bdi/*/read_ahead_kb",
    "/sys/fs/selinux/enforce",
    "/sys/bus/pci/devices/*/sriov_numvfs",
    "/sys/bus/pci/devices/*/numa_node",
    "/proc/irq/*/smp_affinity",
    "/proc/irq/default_smp_affinity",
    "/proc/fs/nfsd/threads",
    "/proc/fs/nfsd/versions",
)
IN_NAMESPACE = (
    "/sys/class/net/*/queues/*/rps_cpus",
    "/sys/class/net/*/queues/*/rps_flow_cnt",
    "/sys/class/net/*/queues/*/xps_*",
    "/sys/class/net/*/mtu",
    "/sys/class/net/*/tx_queue_len",
    "/sys/class/net/*/gro_flush_timeout",
    "/sys/class/net/*/napi_defer_hard_irqs",
    "/sys/class/net/*/threaded",
)
COMMANDS = (
    ("ip", "-d", "-j", "link", "show"),
    ("ip", "-j", "address", "show"),
    ("ip", "-j", "route", "show", "table", "all"),
    ("ip", "-6", "-j", "route", "show", "table", "all"),
    ("ip", "-j", "rule", "show"),
    ("tc", "-j", "qdisc", "show"),
    ("tc", "-j", "filter", "show"),
    ("nft", "-j", "list", "ruleset"),
)
ETHTOOL = ("-k", "-g", "-l", "-c", "-a", "-x", "-T", "--show-priv-flags", "--show-fec", "--show-eee", "")


def differences(one: Any, other: Any, path: str = "") -> list[str]:
    """Every value that is not the same, by its place."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other})
        return [found for key in keys for found in differences(one.get(key), other.get(key), f"{path}/{key}")]
    if isinstance(one, list) and isinstance(other, list) and all(isinstance(part, str) for part in [*one, *other]):
        gone, come = set(one) - set(other), set(other) - set(one)
        return [f"{path}: {sorted(gone)} -> {sorted(come)}"] if gone or come else []
    return [] if one == other else [f"{path}: {one!r} -> {other!r}"]


def main() -> None:
    """Prints it."""
    namespaces = sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []
    snapshot = {
        "sysctls": dict(sysctls("/proc/sys")),
        "files": dict(values(FILES)),
        "cpu_dma_latency_us": int.from_bytes(read_bytes("/dev/cpu_dma_latency")[:4], "little"),
        "mounts": mounts(),
        "namespaces": namespaces,
        "processes": processes(),
        "records": sorted(path for path in glob.glob("/run/nicbench*/**", recursive=True) if not os.path.isdir(path)),
        "networks": {name: in_namespace(name) for name in [None, *namespaces]},
    }
    snapshot["networks"] = {name or "first": content for name, content in snapshot["networks"].items()}
    json.dump(snapshot, sys.stdout, indent=1, sort_keys=True)


def sysctls(folder: str) -> Iterator[tuple[str, str]]:
    """Every one that can be read and does not move by itself."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            key = os.path.relpath(path, folder)
            if not _VOLATILE.fullmatch(key):
                text = read_bytes(path).decode(errors="replace").strip()
                if text:
                    yield key, text


def values(patterns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Path and value."""
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            text = read_bytes(path).decode(errors="replace").strip()
            if text:
                yield path, text


def mounts() -> list[str]:
    """Without the numbers of mounts, which are counted up."""
    lines = read_bytes("/proc/self/mountinfo").decode(errors="replace").splitlines()
    return sorted(" ".join(line.split()[2:]) for line in lines)


def processes() -> list[str]:
    """State, priority and command of those that a run could start or change.

    Left out, because other programs of a machine come and go: whatever is in the first network namespace, but the
    engine and services that are changed; kernel threads, but those whose priority is changed; this program.
    """
    found = []
    first = os.readlink("/proc/self/ns/net") if len(sys.argv) < 3 else sys.argv[2]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = read_bytes(f"/proc/{pid}/comm").decode(errors="replace").strip()
            command = read_bytes(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
            stat = read_bytes(f"/proc/{pid}/stat").decode(errors="replace").rpartition(")")[2].split()
            elsewhere = os.readlink(f"/proc/{pid}/ns/net") != first
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        ours = elsewhere or "nicbench-packets" in command or name in ("irqbalance", "tuned")
        if stat and (ours or name.startswith("ksoftirqd")) and "snapshot" not in command:
            stopped = "stopped" if stat[0] in "Tt" else "going"
            found.append(f"{name} {stopped} nice={stat[16]} {command}")
    return sorted(found)


def in_namespace(name: str | None) -> dict[str, object]:
    """Links, addresses, routes, queues, qdiscs, rules, ethtool's settings and sysctls of a network namespace."""
    prefix = [] if name is None else ["ip", "netns", "exec", name]
    arguments = [sys.executable, os.path.abspath(__file__), "--inside"]
    done = subprocess.run([*prefix, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"cannot be seen": done.stderr}  # it went away meanwhile
    return json.loads(done.stdout)


def inside() -> None:
    """The part that is seen from within a namespace, with its own /sys."""
    content = {"files": dict(values(IN_NAMESPACE)), "sysctls": dict(sysctls("/proc/sys/net"))}
    for command in COMMANDS:
        content[" ".join(command)] = cleaned(output(command))
    for device in sorted(os.listdir("/sys/class/net")):
        if device != "lo":
            for option in ETHTOOL:
                words = ("ethtool", *([option] if option else []), device)
                content[" ".join(words)] = output(words)
    json.dump(content, sys.stdout)


def output(command: tuple[str, ...]) -> str:
    """What it says; of a command that is missing or refuses, that."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    except FileNotFoundError:
        return "not installed"
    return done.stdout.strip() or done.stderr.strip()


def cleaned(text: str) -> object:
    """JSON without what counts; text as it is."""
    try:
        return without(json.loads(text or "[]"))
    except ValueError:
        return text


def without(content: object) -> object:
    """Without the keys that count frames, or name what is the same by a number that is counted up."""
    if isinstance(content, dict):
        kept = {key: without(value) for key, value in content.items() if key not in VOLATILE_LINK_KEYS}
        return {key: value for key, value in kept.items() if key not in ("metainfo", "handle")}
    if isinstance(content, list):
        kept = [without(one) for one in content]
        # The kernel lists what belongs to interfaces in the order of their numbers, which change with a namespace.
        return sorted(kept, key=json.dumps) if all(isinstance(one, dict) and "dev" in one for one in kept) else kept
    return content


def read_bytes(path: str) -> bytes:
    """Empty where it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return stream.read(1 << 20)
    except OSError:
        return b""


if __name__ == "__main__":
    inside() if "--inside" in sys.argv else main()
