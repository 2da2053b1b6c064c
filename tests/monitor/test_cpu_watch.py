"""CPU shares of a round from the monitor's lines as they come."""

from __future__ import annotations

import json

from nicbench.monitor.running import CpuWatch

SERIES = [("cpu_user_ns", "cpu0"), ("cpu_idle_ns", "cpu0"), ("cpu_user_ns", "cpu1"), ("cpu_idle_ns", "cpu1")]


def named(watch: CpuWatch) -> None:
    series = [{"series": number, "metric": metric, "of": of} for number, (metric, of) in enumerate(SERIES)]
    series.append({"series": len(SERIES), "metric": "monitor_cpu_ns", "of": "monitor"})
    watch.heard(json.dumps({"event": "series", "series": series}, separators=(",", ":")))


def sample(*values: int) -> str:
    return json.dumps({"event": "sample", "values": list(enumerate(values))}, separators=(",", ":"))


def test_shares_are_of_all_cpus_and_the_busiest_is_told() -> None:
    watch = CpuWatch()
    named(watch)
    watch.begin()
    watch.heard(sample(1_000_000_000, 0, 0, 1_000_000_000, 2_000_000))
    watch.heard(sample(1_000_000_000, 0, 500_000_000, 500_000_000, 2_000_000))
    cpu = watch.end("server")
    assert (cpu.mean, cpu.minimum, cpu.maximum) == (0.625, 0.5, 0.75)
    assert (cpu.busiest_core, cpu.cpus, cpu.samples, cpu.monitor) == (1.0, 2, 2, 0.001)


def test_samples_before_and_after_a_round_are_not_of_it() -> None:
    watch = CpuWatch()
    named(watch)
    watch.heard(sample(9, 9, 9, 9, 9))
    watch.begin()
    cpu = watch.end("server")
    assert (cpu.mean, cpu.samples) == (None, 0)


def test_what_is_no_line_of_a_monitor_says_nothing() -> None:
    watch = CpuWatch()
    named(watch)
    watch.begin()
    watch.heard("not json")
    watch.heard('{"event":"sample","values":[[99,1],[0,null]]}')
    assert watch.end("server").mean is None
