"""Fleets on a real Slurm: gangs by cable, machines that die, runs that are stopped, and what is left of each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .cluster import Cluster, running_cluster, write_bench

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        yield made


FLEET = """\
fleet: 1
benches: [{bench}]
roles: {roles}
"""
PAIR = "{tester: {role: tester}, dut: {role: dut}}\njoined_by: cable"


def write_fleet(
    cluster: Cluster, name: str, roles: str, *, sizes: int = 1, duration: str = "1 s", more: str = ""
) -> Path:
    write_bench(cluster.folder / f"{name}-bench.yaml", sizes=sizes, duration=duration)
    path = cluster.folder / f"{name}.yaml"
    path.write_text(FLEET.format(bench=f"{name}-bench.yaml", roles=roles) + more)
    return path


def trials_of(row: dict[str, Any]) -> list[str]:
    lines = (Path(row["run"]) / "journal.ndjson").read_text().splitlines()
    return [event["trial"]["key"] for event in map(json.loads, lines) if event["event"] == "trial_finished"]


def test_every_combination_is_measured_once_though_a_machine_dies(cluster: Cluster) -> None:
    more = (
        "matrix: {card: [cx5, cx6, e810], set: [a, b]}\noverlays: {set: {b: {tests: {loss: {frame_bytes: [512]}}}}}\n"
    )
    roles = '{tester: {role: tester}, dut: {role: dut, card: "{card}"}}\njoined_by: cable'
    folder = cluster.submit(write_fleet(cluster, "every", roles, sizes=3, duration="10 s", more=more))
    victim = cluster.until_trials(folder, 0)
    cluster.lab("kill", victim)
    cluster.until(folder, lambda rows: rows[0]["state"] != "running")
    cluster.lab("start", victim)
    rows = cluster.until_done(folder)
    assert len({row["run"] for row in rows}) == len(rows) == 6
    for row in rows:
        trials = trials_of(row)
        assert len(trials) == len(set(trials)) == (2 if row["set"] == "b" else 6)
        pair = {row["machines"]["tester"], row["machines"]["dut"]}
        assert pair in ({"n1", "n2"}, {"n3", "n4"}, {"n5", "n6"})


def test_a_gang_gets_joined_machines_while_half_of_another_pair_is_busy(cluster: Cluster) -> None:
    cluster.lab("in", "sbatch", "--nodelist=n1", "--job-name=half", "--wrap=sleep 600")
    try:
        folder = cluster.submit(write_fleet(cluster, "gang", PAIR, more="repeat: 2\n"))
        for row in cluster.until_done(folder):
            assert {row["machines"]["tester"], row["machines"]["dut"]} in ({"n3", "n4"}, {"n5", "n6"})
    finally:
        cluster.lab("in", "scancel", "--name=half")


def test_a_cancelled_run_keeps_what_it_measured_and_goes_on_when_submitted_again(cluster: Cluster) -> None:
    folder = cluster.submit(
        write_fleet(cluster, "cancelled", "{machine: {role: tester, card: cx5}}", sizes=3, duration="10 s")
    )
    cluster.until_trials(folder, 0)
    cluster.fleet("cancel", str(folder))
    rows = cluster.until(folder, lambda rows: rows[0]["state"] not in ("running", "completing"))
    assert rows[0]["state"] == "cancelled"
    before = (next((folder / "work" / "0000").glob("2*")) / "journal.ndjson").read_text()
    cluster.fleet("submit", str(folder))
    (row,) = cluster.until_done(folder)
    journal = (Path(row["run"]) / "journal.ndjson").read_text()
    assert journal.startswith(before)
    assert (
        sorted(trials_of(row)) == sorted({f"loss/0/{number}" for number in range(6)}) or len(set(trials_of(row))) == 6
    )


def test_an_urgent_run_stops_another_which_goes_on_later(cluster: Cluster) -> None:
    roles = "{machine: {role: tester, card: cx6}}"
    nightly = cluster.submit(
        write_fleet(cluster, "nightly", roles, sizes=4, duration="10 s", more="priority: nightly\n")
    )
    cluster.until_trials(nightly, 0)
    urgent = cluster.submit(write_fleet(cluster, "urgent", roles, more="priority: urgent\n"))
    cluster.until_done(urgent)
    assert cluster.rows(nightly)[0]["state"] != "done"
    (row,) = cluster.until_done(nightly)
    assert len(trials_of(row)) == len(set(trials_of(row))) == 8


def test_nothing_is_lost_with_the_controller(cluster: Cluster) -> None:
    folder = cluster.submit(
        write_fleet(cluster, "controller", "{machine: {role: tester}}", sizes=2, duration="10 s", more="repeat: 4\n")
    )
    cluster.until_trials(folder, 0)
    cluster.lab("stop-controller")
    cluster.lab("start-controller")
    assert len({row["run"] for row in cluster.until_done(folder)}) == 4
