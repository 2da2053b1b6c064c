"""From rounds to figures: sums and means that say nothing where a part is unknown, CPU, and verdicts."""

from __future__ import annotations

import asyncio

import pytest

from nicbench.core.base import WorkloadChoice
from nicbench.core.result import ResultVerdict
from nicbench.core.round import Figures, Flow, Job, JobOutcome, JobSpec, MachineCpu, Round, RoundRequest
from nicbench.methods._round_figures import (
    FIRST_PORT,
    PORTS_A_JOB,
    PlayedRounds,
    clients_by_port,
    cpu_values,
    find_limit,
    jobs_of,
    loads_of,
    machine_cpu,
    mean,
    mean_retransmissions,
    probes_of,
    retransmissions_of,
)
from nicbench.stats.rounds import bits_per_s

from .round_contexts import Laboratory, streamed

ASK = JobSpec(duration_s=1.0)


def job(client: str = "c00", role: str = "load") -> Job:
    return Job(workload="iperf3", client=client, server="s0", ask=ASK, port=5201, role=role)  # type: ignore[arg-type]


def played(laboratory: Laboratory, *jobs: Job) -> tuple[Round, bool]:
    return asyncio.run(laboratory.context.play({}, RoundRequest(jobs=jobs, duration_s=1.0)))


def test_a_mean_with_a_part_unknown_is_unknown() -> None:
    assert mean([1.0, 2.0, 6.0]) == 3.0
    assert mean([1.0, None]) is None
    assert mean([]) is None


def test_what_arrived_counts_and_what_was_sent_where_nobody_says() -> None:
    arrived = Flow(direction="forward", sent_bits_per_s=9.0, received_bits_per_s=8.0)
    sent = Flow(direction="reverse", sent_bits_per_s=5.0)
    assert bits_per_s(Figures(flows=(arrived, sent))) == 13.0
    assert bits_per_s(Figures(flows=(arrived, Flow(direction="reverse")))) is None
    assert bits_per_s(Figures()) is None
    assert bits_per_s(None) is None


def test_retransmissions_are_unknown_where_no_tool_tells_them() -> None:
    assert retransmissions_of([streamed(1.0), streamed(2.0)]) == 2
    assert retransmissions_of([streamed(None)]) is None


def test_probes_and_loads_are_told_apart() -> None:
    one, _ = played(Laboratory(lambda *_: streamed(1.0)), job(), job(role="probe"), job(role="memory"))
    assert [each.role for each, _ in loads_of(one)] == ["load"]
    assert [each.role for each, _ in probes_of(one)] == ["probe"]


def test_cpu_is_in_percent_with_the_least_and_the_greatest_of_all_rounds() -> None:
    cpu = MachineCpu(machine="server", mean=0.2, minimum=0.1, maximum=0.4, busiest_core=0.8, monitor=0.01)
    first, _ = played(Laboratory(lambda *_: streamed(1.0), cpu=(cpu,)), job())
    other = cpu.replace(mean=0.4, minimum=0.05, maximum=0.5)
    second, _ = played(Laboratory(lambda *_: streamed(1.0), cpu=(other,)), job())
    values = cpu_values([first, second], "server", "server")
    assert {name: round(float(value), 6) for name, value in values.items() if isinstance(value, float)} == {
        "server_cpu_mean_percent": 30.0,
        "server_cpu_minimum_percent": 5.0,
        "server_cpu_maximum_percent": 50.0,
        "server_cpu_busiest_core_percent": 80.0,
        "server_monitor_percent": 1.0,
    }
    assert machine_cpu(first, "nobody") is None
    assert set(cpu_values([first], "nobody", "x").values()) == {None}


def test_the_cpu_time_of_the_test_is_its_programs_and_the_kernels_work_without_strangers() -> None:
    cpu = MachineCpu(machine="server", mean=0.9, own=0.1, kernel=0.05, strangers=0.7, idle=0.1)
    one, _ = played(Laboratory(lambda *_: streamed(1.0), cpu=(cpu,)), job())
    values = cpu_values([one], "server", "server")
    assert values["server_cpu_own_percent"] == pytest.approx(15.0)
    assert (values["server_cpu_strangers_percent"], values["server_cpu_mean_percent"]) == (pytest.approx(70.0), 90.0)


def test_a_round_used_although_something_was_wrong_marks_the_result() -> None:
    fine, failed = Laboratory(lambda *_: streamed(1.0)), Laboratory(lambda *_: streamed(None))
    results = PlayedRounds()
    assert results.verdict(failed=False) is ResultVerdict.INCOMPLETE
    results.add(played(fine, job()))
    assert results.verdict(failed=False) is ResultVerdict.VALID
    results.add(played(failed, job()))
    assert results.verdict(failed=False) is ResultVerdict.DISTURBED
    assert results.verdict(failed=True) is ResultVerdict.INCOMPLETE
    assert results.disturbances == ("iperf3, c00 to s0: it ended with exit status 1",)
    assert len(results.round_ids) == 2


def test_each_job_has_ports_of_its_own() -> None:
    laboratory = Laboratory(lambda *_: streamed(1.0), ports=2, clients_per_port=2)
    jobs = jobs_of(laboratory.context.clients, WorkloadChoice(kind="iperf3", omit_s=1), ASK, first=3)  # type: ignore[call-arg]
    assert [each.port for each in jobs] == [FIRST_PORT + PORTS_A_JOB * number for number in (3, 4, 5, 6)]
    assert [each.server for each in jobs] == ["s0", "s0", "s1", "s1"]
    assert jobs[0].options == {"omit_s": 1}
    assert [len(clients) for clients in clients_by_port(laboratory.context).values()] == [2, 2]


def test_the_limit_of_a_round_is_found_from_links_and_machines() -> None:
    laboratory = Laboratory(lambda *_: streamed(94e6))
    one, _ = played(laboratory, job())
    assert find_limit(laboratory.context, [one]).limit == "link"
    tired = (MachineCpu(machine="h00", mean=0.3, busiest_core=0.99),)
    laboratory = Laboratory(lambda *_: streamed(50e6), cpu=tired)
    one, _ = played(laboratory, job())
    assert find_limit(laboratory.context, [one]).clients == ("c00",)


def test_the_limit_of_one_port_is_not_that_of_another_beside_it() -> None:
    tired = (MachineCpu(machine="h10", mean=0.3, busiest_core=0.99),)
    rates = {"c00": 94e6, "c10": 40e6}
    laboratory = Laboratory(lambda _, each: streamed(rates[each.client]), ports=2, cpu=tired)
    one, _ = played(laboratory, *jobs_of(laboratory.context.clients, WorkloadChoice(kind="iperf3"), ASK))
    assert find_limit(laboratory.context, [one], ["c00"]).text == "the link was full"
    assert find_limit(laboratory.context, [one], ["c10"]).clients == ("c10",)
    both = find_limit(laboratory.context, [one])
    assert (both.limit, both.clients) == ("client", ("c10",))
    assert both.text.startswith("the link of s0 was full; a CPU of the client was busy all the time: c10 (99 %)")


def test_the_limit_is_that_of_all_repetitions() -> None:
    rates = iter((94e6, 94e6, 60e6))
    laboratory = Laboratory(lambda *_: streamed(next(rates)))
    rounds = [played(laboratory, job())[0] for _ in range(3)]
    assert find_limit(laboratory.context, rounds).limit == "unknown"
    assert find_limit(laboratory.context, rounds[:2]).limit == "link"
    failed, _ = played(Laboratory(lambda *_: streamed(None)), job())
    assert find_limit(laboratory.context, [*rounds, failed]).text.startswith("what was moved is not known")


@pytest.mark.parametrize(
    ("asked", "told", "rate_bits_per_s"),
    [
        ({"transport": "udp", "write_bytes": 256}, {}, 79e6),
        ({"transport": "udp", "write_bytes": 8192}, {}, 94e6),
        ({}, {"mss_bytes": 524}, 84e6),
    ],
)
def test_a_link_is_full_of_small_packets_at_a_lower_payload(
    asked: dict[str, object], told: dict[str, int], rate_bits_per_s: float
) -> None:
    one_job = job().replace(ask=ASK.replace(**asked))
    laboratory = Laboratory(lambda *_: streamed(rate_bits_per_s, **told))
    assert find_limit(laboratory.context, [played(laboratory, one_job)[0]]).limit == "link"
    slower = Laboratory(lambda *_: streamed(0.9 * rate_bits_per_s, **told))
    assert find_limit(slower.context, [played(slower, one_job)[0]]).limit == "unknown"


def test_retransmissions_are_those_of_one_round_however_often_it_is_repeated() -> None:
    laboratory = Laboratory(lambda *_: streamed(94e6))
    rounds = [played(laboratory, job())[0] for _ in range(10)]
    assert mean_retransmissions(rounds) == 1
    failed, _ = played(Laboratory(lambda *_: streamed(None)), job())
    assert mean_retransmissions([*rounds, failed]) is None


def outcome(began_s: float, took_s: float) -> JobOutcome:
    return streamed(1.0).replace(began_s=began_s, took_s=took_s)


def test_a_load_that_is_over_before_the_probe_spoils_the_round() -> None:
    times = {"load": (0.0, 2.0), "probe": (0.01, 2.5), "memory": (0.0, 1.0)}
    jobs = (job(), job(role="probe"), job(role="memory"))
    one, marked = played(Laboratory(lambda _, each: outcome(*times[each.role])), *jobs)
    assert marked
    assert [finding.text for finding in one.verdict.findings] == [
        "the load iperf3 of c00 was over 0.51 s before the probe was"
    ]
    times["load"] = (0.0, 3.0)
    assert not played(Laboratory(lambda _, each: outcome(*times[each.role])), *jobs)[1]
