"""Who used the CPUs over the rounds of a run: means by machine and program, in one short table each."""

from __future__ import annotations

import pytest

from nicbench.core.judging import Verdict
from nicbench.core.round import Figures, Job, JobOutcome, JobSpec, MachineCpu, ProcessShare, Round, RoundRequest
from nicbench.report.document.blocks import Table, plain
from nicbench.report.sections.watched import cpu_user_parts
from nicbench.report.watched import list_cpu_users

JOB = Job(workload="iperf3", client="c0", server="s0", ask=JobSpec(), port=5201)


def played(number: int, took_s: float, *cpu: MachineCpu, warm_up: bool = False) -> Round:
    return Round(
        id=Round.id_of(number),
        key=f"tcp/{number}/0",
        test="tcp",
        configuration="",
        run=1,
        parameters={},
        repeat=0,
        request=RoundRequest(jobs=(JOB,), duration_s=took_s, warm_up=warm_up),
        outcomes=(JobOutcome(figures=Figures(), began_s=0.0, took_s=took_s),),
        cpu=cpu,
        verdict=Verdict(),
    )


def machine(name: str, own: float, strangers: float, *rows: ProcessShare) -> MachineCpu:
    idle = 1.0 - own - strangers
    return MachineCpu(
        machine=name, own=own, kernel=0.0, nicbench=0.0, strangers=strangers, idle=idle, steal=0.0, processes=rows
    )


def tool(share: float) -> ProcessShare:
    return ProcessShare(user="own", name="iperf3", share=share)


def busy(share: float) -> ProcessShare:
    return ProcessShare(user="stranger", name="stress-ng", share=share, processes=4)


def test_means_are_weighted_by_the_time_of_each_round_and_warm_ups_do_not_count() -> None:
    rounds = [
        played(1, 1.0, machine("server", 0.4, 0.4, tool(0.4), busy(0.4))),
        played(2, 3.0, machine("server", 0.2, 0.0, tool(0.2))),
        played(3, 9.0, machine("server", 0.9, 0.0, tool(0.9)), warm_up=True),
        played(4, 1.0, MachineCpu(machine="old", mean=0.5)),
    ]
    (server,) = list_cpu_users(rounds)
    assert (server.machine, server.rounds) == ("server", 2)
    assert (server.own, server.strangers, server.pressure) == (pytest.approx(0.25), pytest.approx(0.1), None)
    assert [(row.name, round(row.mean, 3), row.greatest) for row in server.programs] == [
        ("iperf3", 0.25, 0.4),
        ("stress-ng", 0.1, 0.4),
    ]


def test_a_run_of_before_has_no_such_section() -> None:
    assert list(cpu_user_parts(list_cpu_users([played(1, 1.0, MachineCpu(machine="old", mean=0.5))]))) == []


def test_each_machine_has_a_row_and_a_table_of_its_ten_greatest_programs() -> None:
    many = (ProcessShare(user="stranger", name=f"program-{number}", share=0.01) for number in range(20))
    rounds = [played(1, 1.0, machine("server", 0.4, 0.2, *many), machine("c0", 0.1, 0.0, tool(0.1)))]
    tables = [block for block in cpu_user_parts(list_cpu_users(rounds)) if isinstance(block, Table)]
    assert [len(one.body) for one in tables] == [2, 10, 1]
    text = " ".join(plain(cell.inlines) for row in tables[2].body for cell in row.cells)
    assert "iperf3" in text
    assert "the test" in text
