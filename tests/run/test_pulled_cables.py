"""A port that vanishes, or a link that flaps, in the midst of a trial: never a loss of the DUT."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from nicbench.core.errors import EngineError, HostError
from nicbench.core.events import Note
from nicbench.core.verdict import Reason
from nicbench.measure import learning
from nicbench.store.folder import RunFolder

from .lab_bench import machine_state, make_folder, output_of, rate_of, short, trials_of
from .test_bad_peers import run_with

pytestmark = pytest.mark.lab


def in_namespace(role: str, *command: str) -> str:
    """Runs a command in the namespace of the tester or the DUT of the one lab that is up in these mounts."""
    (name,) = [line.split()[0] for line in output_of("ip", "netns", "list").splitlines() if role in line]
    return output_of("ip", "netns", "exec", name, *command)


def last_port(role: str) -> str:
    """The port by which frames of the forward way leave the DUT, or come back to the tester."""
    links = json.loads(in_namespace(role, "ip", "-j", "link"))
    return max(link["ifname"] for link in links if link["ifname"] != "lo")


def run_short(parent: Path, driver: str, happens: Callable[[], None]) -> RunFolder:
    folder = make_folder(parent, short("{kind: kernel-forward}", duration="2 s") + f"tester: {{driver: {driver}}}\n")
    run_with(folder, happens)
    return folder


@pytest.mark.sampled(1)
@pytest.mark.parametrize("driver", ["net_af_xdp", "xdp"])
def test_a_port_of_the_tester_that_vanishes_in_a_trial_is_no_loss(driver: str, tmp_path: Path) -> None:
    before = machine_state()
    with pytest.raises(EngineError, match=r"interface of port .* is gone") as caught:
        run_short(
            tmp_path, driver, lambda: in_namespace("tester", "ip", "link", "delete", last_port("tester")) and None
        )
    assert caught.value.exit_status == 4
    assert machine_state() == before


def test_a_flap_of_the_duts_port_spoils_one_trial_and_what_the_kernel_forgot_is_set_again(tmp_path: Path) -> None:
    def flap() -> None:
        device = last_port("dut")
        in_namespace("dut", "ip", "link", "set", device, "down")
        threading.Timer(0.3, in_namespace, ("dut", "ip", "link", "set", device, "up")).start()

    folder = run_short(tmp_path, "net_af_xdp", flap)
    flapped = [trial for trial in trials_of(folder) if Reason.LINK_CHANGED in trial.verdict.reasons]
    assert flapped
    notes = [event.text for event in folder.journal.events() if isinstance(event, Note)]
    assert any("no learning frame came back at first" in text for text in notes)
    summary = folder.summary()
    assert summary is not None
    assert rate_of(summary.results[0]).value


def test_a_cable_that_stays_out_ends_the_run_and_names_the_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "UNTIL_FRAMES_COME_BACK_S", (0.1, 0.2))

    def pull() -> None:
        in_namespace("dut", "ip", "link", "set", last_port("dut"), "down")

    with pytest.raises(HostError, match="nothing comes back from port") as caught:
        run_short(tmp_path, "net_af_xdp", pull)
    assert caught.value.exit_status == 4
