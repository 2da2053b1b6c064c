"""A tuned machine is what it was before: after a run, after Ctrl-C, after SIGKILL and restore, and a second restore.

Told by `tests/tuning/snapshot.py`, which uses nothing of nicbench. Every setting that this kernel has is changed, on
the machine and inside namespaces that stay; during a run each of them must be seen in the snapshot.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import run_captured, run_checked, run_tried
from tests.tuning.snapshot import differences

pytestmark = [pytest.mark.lab, pytest.mark.alone, pytest.mark.slow]

SNAPSHOT = Path(__file__).parents[1] / "tuning" / "snapshot.py"
PATIENCE_S = 120.0
OTHERS_S = 60.0
OURS = "nbrestored"
SOMEBODY_ELSES = Path("/proc/sys/vm/swappiness")

BENCH = """
nicbench: 1
title: Tuned
hosts: {{tester: {{kind: netns, namespace: {near}}}, router: {{kind: netns, namespace: {far}}}}}
ports:
  t0: {{host: tester, device: t0}}
  t1: {{host: tester, device: t1}}
  d0: {{host: router, device: d0}}
  d1: {{host: router, device: d1}}
links: [t0 <-> d0, t1 <-> d1]
dut: {{kind: bridge}}
tuning:
  profile: low-latency
  all:
    huge_pages: {pages}
    read_ahead: {{of: [{disk}], kib: 96}}
    mount_options: {{path: {mount}, options: [noatime, nodiratime]}}
    realtime_throttling: false
    boot_parameters: {{expected: {{nicbench.unknown: false}}}}
    mtu: 1700
  tester:
    sysctls: {{net.ipv4.tcp_rmem: 4096 65536 7000000}}
    offloads: {{features: {{tso: false}}}}
  dut:
    transmit_queue: 500
    packet_steering: {{receive: "0", flows: 64}}
    qdisc: {{kind: pfifo, parameters: [limit, "300"]}}
    connection_tracking: false
    sysctls: {{net.ipv4.tcp_wmem: 4096 65536 7000000, vm.swappiness: {swappiness}}}
thresholds: {{dut_contended_share: 1.0, dut_foreign_cpu_share: 0.99, longest_gap_ms: 500, total_gap_share: 0.9}}
tests:
  - name: sweep
    method: load-sweep
    frame_bytes: [64]
    of: 20 kpps
    loads: [100 %]
    trial: {{duration: {duration}, drain: 50 ms, settle: 50 ms}}
"""


def snapshot() -> dict[str, Any]:
    done = run_captured([sys.executable, str(SNAPSHOT)])
    return json.loads(done.stdout)


def snapshot_alone() -> dict[str, Any]:
    """Of the machine while no other run is on it, which a machine of several users may have."""
    began = time.monotonic()
    while has_records(taken := snapshot()) and time.monotonic() - began < OTHERS_S:
        time.sleep(1.0)
    return only_ours(taken)


def has_records(taken: dict[str, Any]) -> bool:
    return any(path.endswith("/undo.json") for path in taken["records"])


def left_over(before: dict[str, Any], apart_from: str = "nothing") -> list[str]:
    """What has changed; other runs are given the time to end, and what nobody puts back stays."""
    began = time.monotonic()
    while True:
        found = [place for place in changes(before, only_ours(snapshot())) if apart_from not in place]
        if not found or time.monotonic() - began > OTHERS_S:
            return found
        time.sleep(1.0)


def only_ours(taken: dict[str, Any]) -> dict[str, Any]:
    """Of a snapshot what these runs touch: their two namespaces, their mount and processes, and settings of the kernel.

    Somebody may make namespaces, links, mounts and containers meanwhile, and forward frames between them.
    """
    return {
        **taken,
        "namespaces": [name for name in taken["namespaces"] if name.startswith(OURS)],
        "mounts": [mount for mount in taken["mounts"] if OURS in mount or "/mount " in mount],
        "networks": {name: seen for name, seen in taken["networks"].items() if name.startswith(OURS)},
        "records": [path for path in taken["records"] if path.endswith("-tuned/undo.json")],
        "processes": [text for text in taken["processes"] if _is_ours(text)],
        "sysctls": {
            name: value
            for name, value in taken["sysctls"].items()
            if not name.startswith("net/") or name.startswith("net/core/")
        },
    }


def _is_ours(process: str) -> bool:
    name = process.split()[0]
    return (
        name.startswith("ksoftirqd") or name == "irqbalance" or ("nicbench-packets" in process and "-tuned" in process)
    )


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What is not the same. Files of /proc and /sys that came or went did so with a device or a mount of others."""
    both = {
        part: {name: value for name, value in after[part].items() if name in before[part]}
        for part in ("files", "sysctls")
    }
    were = {part: {name: before[part][name] for name in both[part]} for part in both}
    return differences({**before, **were}, {**after, **both})


def nicbench(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nicbench", *arguments]


def inside(namespace: str, *command: str) -> None:
    run_captured(["ip", "netns", "exec", namespace, *command])


def output_of_links(namespace: str) -> str:
    command = ["ip", "-n", namespace, "link", "show", "type", "veth"]
    return run_captured(command).stdout


class Machine:
    """A program called irqbalance, a file system, two namespaces joined by links, and a bench file that changes all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mount = folder / "mount"
        self.mount.mkdir()
        run_checked(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(self.mount)])
        self.near, self.far = (f"nbrestored{end}{os.getpid()}" for end in "td")
        for name in (self.near, self.far):
            run_checked(["ip", "netns", "add", name])
            inside(
                name, "sysctl", "-q", "-w", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"
            )
        for pair in "01":
            # Of other numbers than their peers: the kernel tells of their state at once.
            near, far = (f"t{pair}", "index", f"10{pair}"), (f"d{pair}", "index", f"20{pair}")
            ends = ("link", "add", *near, "type", "veth", "peer", "name", *far, "netns", self.far)
            inside(self.near, "ip", *ends)
            inside(self.near, "ethtool", "-K", f"t{pair}", "gro", "on")
            inside(self.near, "ip", "link", "set", f"t{pair}", "up")
            inside(self.far, "ip", "link", "set", f"d{pair}", "up")
        self._wait_for_links()
        shutil.copy("/bin/sleep", folder / "irqbalance")
        self.irqbalance = subprocess.Popen([str(folder / "irqbalance"), "600"])
        pages = int(Path("/proc/sys/vm/nr_hugepages").read_text())
        disk = min(Path("/sys/block").glob("*/queue/read_ahead_kb")).parents[1].name
        self.values = {"mount": self.mount, "disk": disk, "pages": pages + 400, "swappiness": 7}
        self.values |= {"near": self.near, "far": self.far}

    def _wait_for_links(self) -> None:
        began = time.monotonic()
        for name in (self.near, self.far):
            while (shown := output_of_links(name)).count("state UP") < 2:
                assert time.monotonic() - began < PATIENCE_S, shown
                time.sleep(0.05)

    def remove(self) -> None:
        self.irqbalance.kill()
        self.irqbalance.wait()
        run_checked(["umount", str(self.mount)])
        for name in (self.near, self.far):
            run_checked(["ip", "netns", "delete", name])

    def start(self, duration: str) -> subprocess.Popen[str]:
        bench = self.folder / "bench.yaml"
        bench.write_text(BENCH.format(**self.values, duration=duration))
        command = nicbench("run", str(bench), "--output", str(self.folder / "runs"), "--no-progress", "--no-report")
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def started(self, duration: str) -> tuple[subprocess.Popen[str], Path]:
        """A run once everything is set, and its folder."""
        before = set(self.folder.glob("runs/*/tuning.json"))
        process = self.start(duration)
        began = time.monotonic()
        while not (new := set(self.folder.glob("runs/*/tuning.json")) - before):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() - began < PATIENCE_S
            time.sleep(0.05)
        return process, new.pop().parent


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    swappiness = SOMEBODY_ELSES.read_text()
    made = Machine(tmp_path)
    try:
        yield made
    finally:
        made.remove()
        SOMEBODY_ELSES.write_text(swappiness)


def settings_of(run: Path) -> list[dict[str, Any]]:
    return json.loads((run / "tuning.json").read_text())["settings"]


@pytest.mark.acceptance
def test_after_a_run_and_after_ctrl_c_the_machine_is_what_it_was(machine: Machine) -> None:
    before = snapshot_alone()
    process, run = machine.started("100 ms")
    said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    assert not (left := left_over(before)), "\n".join(left)
    changed = [row for row in settings_of(run) if row["outcome"] == "changed"]
    assert len(changed) >= 10
    for row in changed:
        asked = {key: value for key, value in row["asked"].items() if value != row["before"][key]}
        assert row["during"] == row["at_end"] == row["asked"], row
        assert {key: row["after"][key] for key in asked} == {key: row["before"][key] for key in asked}, row

    process, _ = machine.started("60 s")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, said
    assert not (left := left_over(before)), "\n".join(left)


def test_after_a_kill_and_restore_the_machine_is_what_it_was(machine: Machine) -> None:
    before = snapshot_alone()
    process, run = machine.started("60 s")
    during = snapshot()
    changed = [row["item"] for row in settings_of(run) if row["outcome"] == "changed"]
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    restore = nicbench("restore", str(run))
    SOMEBODY_ELSES.write_text("33")
    first = run_tried(restore, timeout=PATIENCE_S)
    assert first.returncode == 0, first
    assert "sysctls was left at vm.swappiness 33: somebody changed it since we set vm.swappiness 7" in first.stdout
    assert left_over(before, apart_from="/vm/swappiness:") == []
    second = run_tried(restore, timeout=PATIENCE_S)
    assert (second.returncode, second.stdout.strip()) == (0, f"{run.name}: nothing to undo")
    assert SOMEBODY_ELSES.read_text().strip() == "33"
    SOMEBODY_ELSES.write_text(before["sysctls"]["vm/swappiness"])
    assert not (left := left_over(before)), "\n".join(left)
    check_during(machine, before, during, changed)


def check_during(machine: Machine, before: dict[str, Any], during: dict[str, Any], changed: list[str]) -> None:
    """Each setting that was reported as changed is seen by the independent script."""
    seen = differences(before, during)
    tester, dut = machine.near, machine.far
    expected = {
        "watchdog": "/sysctls/kernel/soft_watchdog: '1' -> '0'",
        "timer_migration": "/sysctls/kernel/timer_migration: '1' -> '0'",
        "realtime_throttling": "/sysctls/kernel/sched_rt_runtime_us: '950000' -> '-1'",
        "numa_balancing": "/sysctls/kernel/numa_balancing: '1' -> '0'",
        "busy_polling": "/sysctls/net/core/busy_poll: '0' -> '50'",
        "wakeup_latency": f"/cpu_dma_latency_us: {before['cpu_dma_latency_us']} -> 0",
        "transparent_huge_pages": "/files//sys/kernel/mm/transparent_hugepage/defrag: ",
        "page_merging": "/files//sys/kernel/mm/ksm/run: ",
        "huge_pages": "/files//sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages: ",
        "read_ahead": "read_ahead_kb: ",
        "cpu_frequency": "scaling_governor: ",
        "idle_states": "/disable: ",
        "sysctls": "/sysctls/vm/swappiness: '60' -> '7'",
    }
    for item, text in expected.items():
        if item in changed:
            assert any(text in found for found in seen), (item, text, seen)
    assert "7000000" in during["networks"][tester]["sysctls"]["ipv4/tcp_rmem"]
    assert "7000000" in during["networks"][dut]["sysctls"]["ipv4/tcp_wmem"]
    assert "nicbench_notrack_d0" in json.dumps(during["networks"][dut]["nft -j list ruleset"])
    for text in (
        f"/networks/{tester}/files//sys/class/net/t1/mtu: '1500' -> '1700'",
        f"/networks/{dut}/files//sys/class/net/d0/mtu: '1500' -> '1700'",
        f"/networks/{dut}/files//sys/class/net/d1/tx_queue_len: '1000' -> '500'",
        f"/networks/{dut}/files//sys/class/net/d0/queues/rx-0/rps_cpus: ",
        f"/networks/{dut}/tc -j qdisc show: ",
        f"/networks/{tester}/ethtool -k t0: ",
    ):
        assert any(text in found for found in seen), (text, seen)
    assert any(f" {machine.mount} rw,noatime,nodiratime " in mount for mount in during["mounts"])
    assert any(text.startswith("irqbalance stopped ") for text in during["processes"])
    assert any("nicbench-packets" in text for text in during["processes"])
