"""What the report says of a tester on two machines: how their clocks were compared, and where its ports are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nicbench.core.clocks import ClockMapping, PtpState
from nicbench.core.plan import Plan
from nicbench.core.trial import Purpose, Trial
from nicbench.report.html import fragment
from nicbench.report.sections.method import clocks
from nicbench.report.sections.trials import TrialGroup
from nicbench.report.wiring import wiring

FAR = PtpState(
    host="peer",
    state="SLAVE",
    grandmaster="1a9ad8.fffe.24273d",
    offset_ns=-481.0,
    path_delay_ns=1920.0,
    stamping="HARDWARE",
    system_ns=40.0,
)


def mapped(run: Any, name: str, **changes: Any) -> Trial:
    known = {"by": "test links", "offset_ns": 1_000_000, "drift_ppm": 100.0, "asymmetry_bound_ns": 5000.0}
    mapping = ClockMapping(**{**known, "fit_error_ns": 250.0, "step_ns": 0.0, "comparisons": 6, **changes})
    one: Trial = run.trial("throughput", 64, 1e6, Purpose.SEARCH, 0, knee=1e5)
    return one.replace(id=name, reading=one.reading.replace(clocks=mapping))


def told(*trials: Trial) -> str:
    return fragment(*clocks([TrialGroup("throughput", trials)]))


def test_drift_asymmetry_and_what_the_line_missed_are_told_with_their_ranges(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    page = told(mapped(run, "t0001"), mapped(run, "t0002", drift_ppm=100.2, asymmetry_bound_ns=7000.0))
    assert "by frames that went both ways over the test links" in page
    assert "gained 100 ppm on the first" in page
    assert "wrong by at most 5 to 7 µs because both ways may differ" in page
    assert "by 0.25 µs because the clocks did not follow their line" in page
    assert "PTP on" not in page


def test_ptp_is_told_by_machine_with_its_worst_offset(synthetic_run: Callable[..., Any]) -> None:
    run = synthetic_run()
    worse = FAR.replace(offset_ns=900.0)
    page = told(mapped(run, "t0001", by="ptp", ptp=(FAR,)), mapped(run, "t0002", by="ptp", ptp=(worse,)))
    assert "PTP on peer: SLAVE of 1a9ad8.fffe.24273d, hardware stamps" in page
    assert "by 900 ns at most, over a path of 1920 ns, and the system’s clock off its own by 40 ns" in page


def test_a_tester_on_one_machine_has_no_such_section(synthetic_run: Callable[..., Any]) -> None:
    one = synthetic_run().trial("throughput", 64, 1e6, Purpose.SEARCH, 0, knee=1e5)
    assert told(one) == ""


def test_the_diagram_has_both_machines_with_their_ports() -> None:
    drawn = wiring(
        Plan(
            run_id="r",
            title="t",
            nicbench_version="0",
            seed=1,
            dut={"kind": "bridge"},
            facts={"links": ["t0 <-> d0", "t1 <-> d1"]},
            tester={"ports": [{"name": "t0"}, {"name": "t1"}], "second_machine": {"host": "far", "ports": ["t1"]}},
        )
    )
    assert drawn is not None
    assert [(link.left_machine.title, link.left.name) for link in drawn.links] == [
        ("Tester", "t0"),
        ("Second tester", "t1"),
    ]
    assert "t1 on a second machine" in drawn.words
