"""A fleet on a real Slurm: gangs by cable, and a machine that dies in the midst of a run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from .cluster import Cluster, running_cluster

pytestmark = pytest.mark.lab
PAIRS = ({"n1", "n2"}, {"n3", "n4"}, {"n5", "n6"})


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster("lab") as made:
        yield made
    left = subprocess.run(("ip", "netns", "list"), check=True, capture_output=True, text=True).stdout
    assert "nblab-" not in left


def test_every_combination_is_measured_once_on_joined_machines_though_one_dies(cluster: Cluster) -> None:
    cluster.lab("in", "sbatch", "--nodelist=n5", "--output=/dev/null", "--wrap=sleep 600")  # half of a pair is busy
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
