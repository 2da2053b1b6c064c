"""What `nicbench-monitor` costs: its CPU time over some minutes of samples, by its own account and by the kernel's.

    .venv/bin/python benchmarks/monitor_cost.py [--seconds 300] [--interval-ms 1000]

The kernel's figure is what wait4(2) gives for the process that has ended; both count its start, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

from nicbench.engine.binaries import find_binary

WANTED_SHARE = 0.002
AGREEMENT = 0.1


@dataclass(frozen=True)
class Cost:
    """CPU time of one monitor over ``elapsed_s``."""

    own_s: float
    kernel_s: float
    elapsed_s: float
    samples: int
    longest_sample_s: float
    resident_bytes: int

    @property
    def share(self) -> float:
        """Of one core, by the kernel's account."""
        return self.kernel_s / self.elapsed_s

    @property
    def disagreement(self) -> float:
        """Of the two accounts, relative to the kernel's."""
        return abs(self.own_s - self.kernel_s) / self.kernel_s


def measured(seconds: float, interval_ms: int) -> Cost:
    """Runs one for so long, with this process's tree among what it watches."""
    process = subprocess.Popen(
        [str(find_binary("nicbench-monitor"))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    requests, replies = process.stdin, process.stdout
    assert requests is not None
    assert replies is not None
    began = time.monotonic()

    def ask(number: int, command: str, **fields: object) -> dict[str, Any]:
        requests.write(json.dumps({"id": number, "command": command, **fields}) + "\n")
        requests.flush()
        for line in replies:
            reply: dict[str, Any] = json.loads(line)
            if reply.get("id") == number:
                if not reply["ok"]:
                    raise SystemExit(f"monitor_cost: {command}: {reply['error']}")
                return reply
        raise SystemExit("monitor_cost: the monitor ended")

    ask(1, "configure", interval_ms=interval_ms, processes=[os.getpid()])
    # One renewal for the whole time: whatever answers requests is not what is measured.
    ask(2, "renew", duration_s=seconds)
    ask(3, "start")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        replies.readline()
    reply = ask(4, "close")
    _, _, usage = os.wait4(process.pid, 0)
    return Cost(
        own_s=reply["cpu_ns"] / 1e9,
        kernel_s=usage.ru_utime + usage.ru_stime,
        elapsed_s=time.monotonic() - began,
        samples=reply["samples"],
        longest_sample_s=reply["maximum_sample_ns"] / 1e9,
        resident_bytes=reply["resident_bytes"],
    )


def main() -> int:
    """Prints a line, exits with 1 where the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--interval-ms", type=int, default=1000)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    cost = measured(arguments.seconds, arguments.interval_ms)
    is_met = cost.share < WANTED_SHARE and cost.disagreement < AGREEMENT
    print(
        f"monitor, {1000 / arguments.interval_ms:g} Hz, {cost.elapsed_s:.0f} s, {cost.samples} samples: "
        f"{100 * cost.share:.3f} % of one core by wait4(2) ({cost.kernel_s:.3f} s), {cost.own_s:.3f} s by its own "
        f"account, {100 * cost.disagreement:.1f} % apart; longest sample {1e3 * cost.longest_sample_s:.2f} ms, "
        f"{cost.resident_bytes / 2**20:.1f} MiB; load average {load:.1f} before, {os.getloadavg()[0]:.1f} after, "
        f"{os.cpu_count()} CPUs; wanted: under {100 * WANTED_SHARE:g} % and {100 * AGREEMENT:g} %: "
        f"{'met' if is_met else 'missed'}"
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
