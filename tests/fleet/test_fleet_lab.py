"""What may happen to a fleet on a real Slurm: runs that are stopped or refused, networks and controllers that fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands import run_captured

from .cluster import ROOT, Cluster, running_cluster

pytestmark = [pytest.mark.lab, pytest.mark.acceptance]
PAIRS = ({"n1", "n2"}, {"n3", "n4"}, {"n5", "n6"})


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    with running_cluster() as made:
        yield made
    left = run_captured(("ip", "netns", "list")).stdout
    assert "nbtests-" not in left


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The cluster with every node idle, whatever became of the test before."""
    shared_cluster.clear()
    return shared_cluster


def machine(card: str, role: str = "tester") -> str:
    return f"{{machine: {{role: {role}, card: {card}}}}}"


def state_of(cluster: Cluster, node: str) -> str:
    """Addresses, rules, filters, forwarding and records of changes on a node."""
    settings = "sysctl -a 2>/dev/null | grep forwarding"
    return cluster.lab(
        "on",
        node,
        "sh",
        "-c",
        f"ip -br addr; ip netns; nft list ruleset; {settings}; find /run/nicbench -name 'undo*' || true",
    )


def test_machines_find_the_cables_between_them(cluster: Cluster) -> None:
    features = (sys.executable, "-m", "nicbench", "fleet", "features", "--cables", "5s")
    said = cluster.lab("in", "srun", "-N2", "-C", "cable=c1", *features).splitlines()
    assert sorted(line.split()[0] for line in said) == ["NodeName=n1", "NodeName=n2"]
    for line in said:
        assert line.endswith("cable=n1.data0--n2.data0,cable=n1.data1--n2.data1")


def test_real_frames_between_two_machines_and_nothing_is_left_of_them(cluster: Cluster) -> None:
    """The example of the documentation, with the keys of this cluster."""
    example = ROOT / "examples" / "fleet"
    bench = (example / "forwarding.yaml").read_text()
    (cluster.folder / "forwarding.yaml").write_text(
        bench.replace("~/.cache/nicbench/slurm-lab", str(cluster.folder / "slurm"))
    )
    (cluster.folder / "example.yaml").write_text((example / "fleet.yaml").read_text())
    nodes = ("n1", "n2", "n3", "n4")
    before = [state_of(cluster, node) for node in nodes]
    folder = cluster.submit(cluster.folder / "example.yaml")
    rows = cluster.until_done(folder)
    assert len(rows) == 4
    for row in rows:
        summary = json.loads((Path(row["run"]) / "summary.json").read_text())
        assert summary["verdict"] != "incomplete"
        assert len(summary["results"]) >= 2
    assert [state_of(cluster, node) for node in nodes] == before


@pytest.fixture
def _half_of_a_pair_is_busy(cluster: Cluster) -> Iterator[None]:
    job = cluster.lab("in", "sbatch", "--parsable", "--nodelist=n5", "--output=/dev/null", "--wrap=sleep 600").strip()
    yield
    cluster.lab("in", "scancel", job)


@pytest.mark.usefixtures("_half_of_a_pair_is_busy")
def test_every_combination_is_measured_once_on_joined_machines_though_one_dies(cluster: Cluster) -> None:
    more = """joined_by: cable
matrix: {set: [long, short]}
overlays: {set: {short: {tests: {loss: {frame_bytes: [512]}}}}}
"""
    roles = "{tester: {role: tester}, dut: {role: dut}}"
    folder = cluster.submit(cluster.write_fleet("every", roles, more, sizes=3, duration="10 s"))
    victim = cluster.until_trials(folder, 0)
    cluster.lab("kill", victim)
    cluster.until_queued(folder, 0)
    cluster.lab("start", victim)
    rows = cluster.until_done(folder)
    assert len({row["run"] for row in rows}) == len(rows) == 2
    for row in rows:
        trials = cluster.trials_of(row)
        assert len(trials) == len(set(trials)) == (2 if row["set"] == "short" else 6)
        assert {row["machines"]["tester"], row["machines"]["dut"]} in PAIRS[:2]
    assert f"{folder.name}: 2 runs: 2 done" in cluster.fleet("status", str(folder))


def test_forty_combinations_have_forty_results_though_a_machine_dies(cluster: Cluster) -> None:
    sets = ", ".join(f"s{number}" for number in range(20))
    more = f"joined_by: cable\nmatrix: {{set: [{sets}]}}\nrepeat: 2\noverlays: {{set: {{}}}}\n"
    folder = cluster.submit(cluster.write_fleet("forty", "{tester: {role: tester}, dut: {role: dut}}", more))
    victim = cluster.until_trials(folder, 3)
    cluster.lab("kill", victim)
    cluster.wait_for(lambda: None if "down" not in cluster.lab("status").lower() else True)
    cluster.lab("start", victim)
    rows = cluster.until_done(folder)
    assert len({row["run"] for row in rows}) == len(rows) == 40
    assert all(len(cluster.trials_of(row)) == len(set(cluster.trials_of(row))) == 2 for row in rows)


def test_a_cancelled_run_keeps_what_it_measured_and_goes_on_when_submitted_again(cluster: Cluster) -> None:
    folder = cluster.submit(cluster.write_fleet("cancelled", machine("cx5"), sizes=10, duration="10 s"))
    cluster.until_trials(folder, 0)
    cluster.fleet("cancel", str(folder))
    cluster.until(folder, 0, "cancelled")
    journal = next((folder / "work" / "0000").glob("2*/journal.ndjson"))
    before = cluster.wait_for(lambda: text if "run_finished" in (text := journal.read_text()) else None)
    cluster.fleet("submit", str(folder))
    (row,) = cluster.until_done(folder)
    assert (Path(row["run"]) / "journal.ndjson").read_text().startswith(before)
    assert len(cluster.trials_of(row)) == len(set(cluster.trials_of(row))) == 20


def test_an_urgent_run_stops_another_which_goes_on_later(cluster: Cluster) -> None:
    nightly = cluster.submit(
        cluster.write_fleet("nightly", machine("cx6"), "priority: nightly\n", sizes=25, duration="10 s")
    )
    cluster.until_trials(nightly, 0)
    urgent = cluster.submit(cluster.write_fleet("urgent", machine("cx6"), "priority: urgent\n"))
    cluster.until_done(urgent)
    assert cluster.rows(nightly)[0]["state"] != "done"
    (row,) = cluster.until_done(nightly)
    assert len(cluster.trials_of(row)) == len(set(cluster.trials_of(row))) == 50


def test_what_the_controller_has_written_down_is_not_lost_with_it(cluster: Cluster) -> None:
    fleet = cluster.write_fleet("controller", "{machine: {role: tester}}", "repeat: 4\n", sizes=8, duration="10 s")
    folder = cluster.submit(fleet)
    cluster.until_trials(folder, 0)
    cluster.until_saved(folder)
    cluster.lab("stop-controller")
    cluster.lab("start-controller")
    assert len({row["run"] for row in cluster.until_done(folder)}) == 4


def test_a_run_beyond_its_limit_is_stopped_and_goes_on_when_submitted_again(cluster: Cluster) -> None:
    fleet = cluster.write_fleet("limit", machine("cx5"), "time_limit: 1 min\n", sizes=300, duration="10 s")
    folder = cluster.submit(fleet)
    row = cluster.until(folder, 0, "timeout")
    assert row["run"] is None
    before = len(next((folder / "work" / "0000").glob("2*/journal.ndjson")).read_text().splitlines())
    assert before > 10
    cluster.fleet("submit", str(folder))
    cluster.wait_for(
        lambda: (
            len(next((folder / "work" / "0000").glob("2*/journal.ndjson")).read_text().splitlines()) > before or None
        )
    )
    cluster.fleet("cancel", str(folder))


def test_a_machine_that_is_cut_off_has_its_run_made_elsewhere_and_no_trial_is_counted_twice(cluster: Cluster) -> None:
    fleet = cluster.write_fleet("cut", "{machine: {role: tester}}", sizes=40, duration="10 s")
    folder = cluster.submit(fleet)
    victim = cluster.until_trials(folder, 0)
    cluster.lab("cut", victim)
    try:
        (row,) = cluster.until_done(folder)
    finally:
        cluster.lab("join", victim)
        # Slurm takes a machine out of the queue that comes back with a job which it has started elsewhere since.
        cluster.lab("in", "scontrol", "update", f"NodeName={victim}", "State=RESUME")
    assert row["machines"]["machine"] != victim
    assert len(cluster.trials_of(row)) == len(set(cluster.trials_of(row))) == 80


VETH = """\
nicbench: 1
title: A machine of one's own
lab: veth
dut: kernel-forward
tests:
  - name: loss
    method: load-sweep
    of: 10 kpps
    loads: [100 %]
    frame_bytes: [64]
    trial: {{duration: {duration}, drain: 100 ms, settle: 100 ms}}
"""


def test_a_machine_that_somebody_has_is_tried_again(cluster: Cluster) -> None:
    """Exit status 3: the lease of the machine is held outside of Slurm, or by the other node that shares it."""
    for name, duration in (("held", "200 ms"), ("holding", "30 s")):
        (cluster.folder / f"{name}-bench.yaml").write_text(VETH.format(duration=duration))
    path = cluster.folder / "held.yaml"
    path.write_text("fleet: 1\nbenches: [held-bench.yaml]\nroles: {machine: {lab: veth}}\nrepeat: 4\n")
    before = [state_of(cluster, node) for node in ("n5", "n6")]
    holding = str(cluster.folder / "holding-bench.yaml")
    hold = f"until {sys.executable} -m nicbench run {holding} --runs /tmp/held; do sleep 1; done"
    holder = cluster.beside("on", "n5", "sh", "-c", hold)
    try:
        cluster.wait_for(
            lambda: "own" in cluster.lab("on", "n5", "find", "/run/nicbench", "-name", "undo.json") or None
        )
        folder = cluster.submit(path)
        cluster.wait_for(
            lambda: any("Slurm tries it again" in log.read_text() for log in (folder / "logs").iterdir()) or None
        )
    finally:
        cluster.lab("on", "n5", "pkill", "-TERM", "-f", "holding-bench.yaml")
        holder.wait()
    rows = cluster.until_done(folder)
    assert len({row["run"] for row in rows}) == 4
    assert [state_of(cluster, node) for node in ("n5", "n6")] == before


def test_a_machine_whose_changes_are_not_undone_is_taken_out_of_the_queue(cluster: Cluster) -> None:
    record = "/run/nicbench/2026-01-01T000000Z-dead/undo.json"
    cluster.lab(
        "on", "n2", "sh", "-c", f"mkdir -p -m 700 $(dirname {record}) && echo '{{' > {record} && chmod 600 {record}"
    )
    folder = cluster.submit(cluster.write_fleet("left", machine("cx5", "dut")))
    cluster.until_done(folder)
    cluster.wait_for(lambda: True if "n2 drain" in cluster.lab("status").lower() else None)
    cluster.lab("on", "n2", "rm", "-r", "/run/nicbench/2026-01-01T000000Z-dead")
    cluster.lab("in", "scontrol", "update", "NodeName=n2", "State=RESUME")
