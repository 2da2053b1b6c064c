"""CPU figures against numbers worked out by hand."""

from __future__ import annotations

from nicbench.stats.cpu import (
    CpuStates,
    add_times,
    utilisation,
)

S = 1_000_000_000


def spent(busy_s: float, idle_s: float, steal_s: float = 0.0, softirq_s: float = 0.0) -> CpuStates:
    times = {"user": busy_s, "softirq": softirq_s, "idle": idle_s, "steal": steal_s}
    return CpuStates({state: round(time_s * S) for state, time_s in times.items()})


def test_stolen_and_idle_time_is_not_work() -> None:
    one = CpuStates(
        {"user": 10, "nice": 1, "system": 2, "irq": 3, "softirq": 4, "guest": 5, "idle": 60, "iowait": 7, "steal": 8}
    )
    assert (one.busy_ns, one.total_ns) == (25, 100)
    assert one.share("steal") == 0.08


def test_the_mean_is_weighted_by_time() -> None:
    found = utilisation([spent(1, 0), spent(0.5, 2.5), spent(0, 0)])
    assert found is not None
    assert (found.minimum, found.mean, found.maximum) == (0.5 / 3, 1.5 / 4, 1.0)
    assert found.samples == 2


def test_of_one_state_alone() -> None:
    found = utilisation([spent(0.5, 0.25, softirq_s=0.25), spent(0, 1)], ("softirq",))
    assert found is not None
    assert (found.minimum, found.mean, found.maximum) == (0.0, 0.125, 0.25)


def test_no_time_is_no_share() -> None:
    assert utilisation([]) is None
    assert utilisation([spent(0, 0)]) is None
    assert spent(0, 0).share("idle") is None


def test_cpus_add_up() -> None:
    both = add_times([spent(1, 0), spent(0, 1, steal_s=1)])
    assert both.by_state == {"user": S, "softirq": 0, "idle": S, "steal": S}
