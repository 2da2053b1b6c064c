"""CPU figures against numbers worked out by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from nicbench.stats.cpu import (
    ENDED,
    INTERRUPTS,
    UNSEEN,
    Census,
    CountedProcess,
    CpuStates,
    CpuUse,
    add_times,
    parse_census,
    tell_apart,
    utilisation,
    with_exact_children,
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
    assert (found.minimum, found.mean, found.maximum) == (0.5 / 3, 1.5 / 4, 1.0)
    assert found.samples == 2


def test_of_one_state_alone() -> None:
    found = utilisation([spent(0.5, 0.25, softirq_s=0.25), spent(0, 1)], ("softirq",))
    assert (found.minimum, found.mean, found.maximum) == (0.0, 0.125, 0.25)


def test_no_time_is_no_share() -> None:
    assert utilisation([]) is None
    assert utilisation([spent(0, 0)]) is None
    assert spent(0, 0).share("idle") is None


def test_cpus_add_up() -> None:
    both = add_times([spent(1, 0), spent(0, 1, steal_s=1)])
    assert both.by_state == {"user": S, "softirq": 0, "idle": S, "steal": S}


# Who used the CPUs between two counts of processes: the test, the kernel, nicbench, strangers.


SECOND = 1_000_000_000
CONTROLLER, MONITOR = 100, 101


def process(pid: int, parent: int, name: str, own_s: float, ended_s: float = 0.0, **more: object) -> CountedProcess:
    return CountedProcess(
        pid=pid,
        parent=parent,
        started=pid,
        name=name,
        own_ns=round(own_s * SECOND),
        ended_ns=round(ended_s * SECOND),
        **more,  # type: ignore[arg-type]
    )


def census(
    at_s: float,
    processes: Iterable[CountedProcess],
    *,
    idle_s: float = 0.0,
    softirq_s: float = 0.0,
    steal_s: float = 0.0,
    user_s: float = 0.0,
    pressure_s: float | None = None,
    groups: dict[str, float] | None = None,
) -> Census:
    states = {"user": user_s, "idle": idle_s, "softirq": softirq_s, "steal": steal_s}
    return Census(
        taken_ns=round(at_s * SECOND),
        monitor=MONITOR,
        parent=CONTROLLER,
        cpus=2,
        states={name: round(spent * SECOND) for name, spent in states.items()},
        processes={one.key: one for one in processes},
        groups={path: round(used * SECOND) for path, used in (groups or {}).items()},
        pressure_some_ns=None if pressure_s is None else round(pressure_s * SECOND),
    )


def ours(own_s: float = 0.0, ended_s: float = 0.0, monitor_s: float = 0.0) -> list[CountedProcess]:
    return [
        process(1, 0, "systemd", 0.0),
        process(CONTROLLER, 1, "nicbench", own_s, ended_s),
        process(MONITOR, CONTROLLER, "nicbench-monito", monitor_s, marked=True),
    ]


def used(before: Iterable[CountedProcess], after: Iterable[CountedProcess], **more: float) -> CpuUse:
    """Of ten seconds of two CPUs, the shares; whatever ``after`` does not use is idle."""
    use = tell_apart(census(0, before), census(10, after, **more))
    assert use is not None
    return use


def test_each_user_has_its_share_and_a_name() -> None:
    before = [*ours(1.0), process(7, 1, "stress-ng", 50.0), process(3, 2, "ksoftirqd/0", 1.0, kernel=True)]
    after = [
        *ours(1.2, ended_s=3.0, monitor_s=0.2),
        process(7, 1, "stress-ng", 56.0),
        process(3, 2, "ksoftirqd/0", 2.0, kernel=True),
        process(200, CONTROLLER, "iperf3", 2.0, marked=True),
    ]
    use = used(before, after, idle_s=6.6, softirq_s=1.5)
    assert (use.own, use.kernel, use.nicbench, use.strangers, use.idle) == pytest.approx(
        (0.25, 0.1, 0.02, 0.3, 0.33), abs=1e-9
    )
    assert {(row.user, row.name): round(row.share, 3) for row in use.rows} == {
        ("stranger", "stress-ng"): 0.3,
        ("own", ENDED): 0.15,
        ("own", "iperf3"): 0.1,
        ("kernel", "ksoftirqd/0"): 0.05,
        ("kernel", INTERRUPTS): 0.05,
        ("nicbench", "nicbench"): 0.01,
        ("nicbench", "nicbench-monito"): 0.01,
    }


def test_what_a_process_used_before_it_ended_within_the_round_is_not_of_the_round() -> None:
    server = process(200, CONTROLLER, "iperf3", 5.0, marked=True)
    use = used([*ours(), server], ours(ended_s=7.0), idle_s=18.0)
    assert use.own == pytest.approx(0.1)


def test_children_of_a_stranger_are_strangers_also_when_they_have_ended() -> None:
    before = [*ours(), process(50, 1, "make", 1.0, 100.0), process(51, 50, "cc1", 3.0)]
    after = [*ours(), process(50, 1, "make", 1.0, 109.0)]
    use = used(before, after, idle_s=14.0)
    assert use.strangers == pytest.approx(0.3)
    assert use.rows[0].name == "make"


def test_of_a_stranger_that_stayed_on_a_cpu_that_is_known() -> None:
    before = [*ours(), process(7, 1, "stress-ng", 0.0, cpu=1), process(8, 1, "make", 0.0, cpu=0)]
    after = [
        *ours(),
        process(7, 1, "stress-ng", 6.0, cpu=1),
        process(8, 1, "make", 2.0, 3.0, cpu=1),  # it moved, and where its children ran nobody knows
        process(9, 1, "stress-ng", 2.0, cpu=0),  # it began meanwhile
        process(200, CONTROLLER, "iperf3", 2.0, marked=True, cpu=1),
    ]
    use = used(before, after, idle_s=5.0)
    assert {row.name: row.on_cpus for row in use.rows if row.on_cpus} == {"stress-ng": {0: 0.1, 1: 0.3}}


def test_threads_of_the_kernel_are_no_strangers() -> None:
    before = [*ours(), *(process(20 + n, 2, "nfsd", 0.0, kernel=True) for n in range(8))]
    after = [*ours(), *(process(20 + n, 2, "nfsd", 1.0, kernel=True) for n in range(8))]
    use = used(before, after, idle_s=12.0)
    assert (use.kernel, use.strangers) == pytest.approx((0.4, 0.0))
    assert (use.rows[0].name, use.rows[0].processes) == ("nfsd", 8)


def test_what_a_server_of_the_test_starts_is_the_tests_own_even_without_its_environment() -> None:
    after = [*ours(), process(200, CONTROLLER, "smbd", 1.0, marked=True), process(201, 200, "smbd-worker", 3.0)]
    assert used(ours(), after, idle_s=16.0).own == pytest.approx(0.2)


def test_another_run_of_nicbench_is_a_stranger() -> None:
    other = [process(300, 1, "nicbench", 1.0), process(301, 300, "iperf3", 3.0)]
    assert used(ours(), [*ours(), *other], idle_s=16.0).strangers == pytest.approx(0.2)


def test_a_client_that_a_host_by_ssh_has_ended_is_the_tests_own_and_its_sshd_is_nicbench() -> None:
    def sshd(own_s: float, ended_s: float) -> list[CountedProcess]:
        keeper = process(401, 400, "sh", 0.0, marked=True)
        return [*ours(), process(400, 1, "sshd-session", own_s, ended_s), keeper]

    use = used(sshd(0.0, 5.0), sshd(1.0, 9.0), idle_s=15.0)
    assert (use.own, use.nicbench, use.strangers) == pytest.approx((0.2, 0.05, 0.0))


def test_a_client_that_ended_in_a_container_is_known_by_its_control_group() -> None:
    shell = process(500, 499, "sh", 0.1, marked=True, group="0::/libpod-1")
    engine = process(499, 1, "conmon", 0.0)
    before = census(0, [*ours(), shell, engine], groups={"0::/libpod-1": 0.1})
    systemd = [process(1, 0, "systemd", 0.0, 5.0), *ours()[1:]]
    after = census(10, [*systemd, shell, engine], groups={"0::/libpod-1": 4.1}, idle_s=15.0)
    use = tell_apart(before, after)
    # The first process of the machine reaped it, and one second of somebody else's.
    assert (use.own, use.strangers) == pytest.approx((0.2, 0.05))


def test_busy_time_that_no_process_accounts_for_is_of_strangers_that_are_not_seen() -> None:
    use = used(ours(), ours(), idle_s=10.0, softirq_s=2.0, user_s=8.0)
    assert (use.kernel, use.strangers) == pytest.approx((0.1, 0.4))
    assert use.rows[0].name == UNSEEN


def test_interrupts_that_processes_were_billed_for_are_not_counted_again() -> None:
    after = [*ours(), process(200, CONTROLLER, "iperf3", 12.0, marked=True)]
    use = used(ours(), after, idle_s=8.0, softirq_s=6.0)
    assert (use.own, use.kernel, use.strangers) == pytest.approx((0.6, 0.0, 0.0))


def test_a_tool_that_has_just_ended_has_lost_its_mark_and_is_the_tests_own_nonetheless() -> None:
    server = process(200, 1, "iperf3", 1.0, marked=True)
    ended = [process(200, 1, "iperf3", 3.0, zombie=True), process(201, CONTROLLER, "iperf3", 2.0, zombie=True)]
    use = used([*ours(), server], [*ours(), *ended], idle_s=16.0)
    assert (use.own, use.strangers) == pytest.approx((0.2, 0.0))


def test_looks_of_nicbench_are_its_own_also_while_they_end() -> None:
    look = process(200, CONTROLLER, "sh", 0.0, marked=True)
    after = [process(200, CONTROLLER, "sh", 0.5, ended_s=1.0), process(201, CONTROLLER, "ss", 0.5)]
    use = used([*ours(), look, process(199, 200, "sleep", 0.0, marked=True)], [*ours(), *after], idle_s=18.0)
    assert (use.nicbench, use.own, use.strangers) == pytest.approx((0.1, 0.0, 0.0))


def test_what_a_shell_of_the_test_started_is_the_tests_when_it_has_ended() -> None:
    shell = process(200, CONTROLLER, "sh", 0.0, marked=True)
    after = process(200, CONTROLLER, "sh", 0.0, ended_s=2.0, marked=True)
    use = used([*ours(), shell], [*ours(), after], idle_s=18.0)
    assert (use.nicbench, use.own) == pytest.approx((0.0, 0.1))


def test_a_shell_of_someone_else_is_a_stranger() -> None:
    use = used(ours(), [*ours(), process(200, 1, "sh", 2.0)], idle_s=18.0)
    assert (use.nicbench, use.strangers) == pytest.approx((0.0, 0.1))


def test_a_reused_number_is_another_process() -> None:
    before = [*ours(), process(200, 1, "old", 90.0)]
    new = CountedProcess(pid=200, parent=CONTROLLER, started=999, name="iperf3", own_ns=2 * SECOND, marked=True)
    assert used(before, [*ours(), new], idle_s=18.0).own == pytest.approx(0.1)


def test_pressure_is_a_share_of_the_time_and_unknown_where_the_kernel_does_not_tell() -> None:
    told = tell_apart(census(0, ours(), pressure_s=1.0), census(10, ours(), pressure_s=2.5, idle_s=20.0))
    silent = tell_apart(census(0, ours()), census(10, ours(), idle_s=20.0))
    assert (told.pressure, silent.pressure) == (pytest.approx(0.15), None)


def test_two_counts_at_one_moment_say_nothing() -> None:
    assert tell_apart(census(5, ours()), census(5, ours())) is None


def test_a_table_has_ten_rows_and_the_shares_have_all() -> None:
    many = [process(600 + n, 1, f"program-{n}", 0.5) for n in range(20)]
    tool = process(200, CONTROLLER, "iperf3", 0.1, marked=True)
    use = used(ours(), [*ours(), *many, tool], idle_s=9.9)
    assert (len(use.rows), use.strangers) == (10, pytest.approx(0.5))
    assert (use.rows[-1].name, use.rows[-1].user) == ("iperf3", "own")


def test_parents_in_a_circle_are_no_endless_loop() -> None:
    """Numbers are reused: a list that was read while processes ended may say so."""
    pair = [process(700, 701, "a", 1.0), process(701, 700, "b", 1.0)]
    assert used([*ours(), *pair], [*ours(), *pair], idle_s=20.0).strangers == 0.0
    assert used([*ours(), *pair], ours(), idle_s=20.0).strangers == 0.0


def test_a_little_busy_time_that_nobody_accounts_for_is_a_matter_of_ticks() -> None:
    use = used(ours(), ours(), idle_s=19.7, user_s=0.3)
    assert (use.kernel, use.strangers) == pytest.approx((0.0, 0.0))


def test_time_that_an_emulated_machine_has_in_no_state_is_of_nobody() -> None:
    use = used(ours(), ours(), idle_s=15.0, user_s=0.1)
    assert (use.kernel, use.strangers) == pytest.approx((0.0, 0.0))


@pytest.mark.parametrize(("told_s", "kept_s"), [(3.013, 3.013), (3.5, 3.02), (2.0, 3.0)])
def test_what_the_kernel_tells_the_controller_of_its_children_is_exact_within_a_tick(
    told_s: float, kept_s: float
) -> None:
    exact = with_exact_children(census(0, ours(ended_s=3.0)), CONTROLLER, round(told_s * SECOND))
    assert exact.processes[CONTROLLER, CONTROLLER].ended_ns == round(kept_s * SECOND)
    assert with_exact_children(exact, 4711, 5) is exact


def test_a_count_of_the_monitor_is_read() -> None:
    reply = {
        "taken_ns": 5,
        "monitor": 101,
        "parent": 100,
        "cpus": 2,
        "states": [["user", 7]],
        "pressure_some_ns": None,
        "processes": [
            {
                "pid": 9,
                "parent": 1,
                "started": 77,
                "name": "sh",
                "kernel": False,
                "zombie": False,
                "marked": True,
                "group": None,
                "own_ns": 3,
                "ended_ns": 4,
            }
        ],
        "groups": [{"path": "0::/x", "usage_ns": 8}],
    }
    found = parse_census(reply)
    assert found.processes[9, 77] == CountedProcess(9, 1, 77, "sh", 3, 4, marked=True)
    assert (found.states, found.groups) == ({"user": 7}, {"0::/x": 8})
