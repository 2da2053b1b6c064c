"""A run goes on where it began: on other machines only where it is asked to, and then it says so."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fakes import FakeHost

from nicbench.bench_file import parse
from nicbench.core.errors import HostError, UsageError
from nicbench.core.events import Bus, MachinesUsed, Note, UsedMachine
from nicbench.core.redaction import Redactor
from nicbench.hosts.kinds.local import LocalHost
from nicbench.stages import machine as stage
from nicbench.store.folder import RunFolder

from .simulated_bench import make_folder, run_whole

Machine = tuple[str, str, tuple[str, ...]]
HERE = ("the id of a machine", "rack1-07", ("0000:03:00.0 0x15b3 0x1017",))


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes every machine answer as the one that is given: its id, its name, its adapters."""

    def answer(machine: Machine) -> None:
        async def output_of(*_: object) -> str:
            return "\n".join((machine[0], machine[1], *machine[2])) + "\n"

        monkeypatch.setattr(stage, "output_of", output_of)

    answer(HERE)
    return answer


@pytest.fixture
def measured(tmp_path: Path, ask: Any) -> RunFolder:
    """A whole run, made by the machine ``HERE``."""
    folder = make_folder(tmp_path)
    run_whole(folder)
    return RunFolder.open(folder.path)


def go_on(folder: RunFolder, *, others_allowed: bool = False) -> None:
    bench = parse(folder.bench_text.encode(), folder.path / "bench.yaml")
    bus = Bus()
    bus.subscribe(folder.journal.append)
    try:
        asyncio.run(stage.see_machines(bench, folder, bus, others_allowed=others_allowed))
    finally:
        folder.journal.close()


def used(folder: RunFolder) -> list[dict[str, UsedMachine]]:
    return [event.machines for event in folder.journal.events() if isinstance(event, MachinesUsed)]


def test_a_run_says_which_machines_it_uses(measured: RunFolder) -> None:
    (machines,) = used(measured)
    (machine,) = machines.values()
    assert (machine.host_name, machine.cards) == ("rack1-07", {"0000:03:00.0": "15b3:1017"})
    assert HERE[0] not in (measured.path / "journal.ndjson").read_text(), "the id of a machine is confidential"


def test_the_same_machine_goes_on_and_tells_nothing_new(measured: RunFolder) -> None:
    before = (measured.path / "journal.ndjson").read_bytes()
    go_on(measured)
    assert (measured.path / "journal.ndjson").read_bytes() == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (("77aa", "rack1-09", HERE[2]), "was rack1-07 and is rack1-09"),
        ((HERE[0], "rack1-09", HERE[2]), "was rack1-07 and is rack1-09"),
        (("77aa", "rack1-07", HERE[2]), "another machine of the name rack1-07"),
        ((HERE[0], "rack1-07", ("0000:03:00.0 0x15b3 0x101d",)), "0000:03:00.0 was 15b3:1017, is 15b3:101d"),
        ((HERE[0], "rack1-07", ()), "0000:03:00.0 was 15b3:1017, is empty"),
    ],
    ids=["another", "a clone of its disk", "another of its name", "another card", "without its card"],
)
def test_another_machine_is_refused_and_named(measured: RunFolder, ask: Any, machine: Machine, words: str) -> None:
    ask(machine)
    before = (measured.path / "journal.ndjson").read_bytes()
    with pytest.raises(UsageError, match=f"began on other machines.*{words}") as refused:
        go_on(measured)
    assert "--on-other-machines" in str(refused.value)
    assert (measured.path / "journal.ndjson").read_bytes() == before


def test_where_it_is_asked_for_the_journal_says_that_the_run_moved(measured: RunFolder, ask: Any) -> None:
    ask(("77aa", "rack1-09", ()))
    go_on(measured, others_allowed=True)

    first, second = used(measured)
    assert first != second
    notes = [event for event in measured.journal.events() if isinstance(event, Note)]
    assert any(note.level == "warning" and "was rack1-07 and is rack1-09" in note.text for note in notes)


def test_a_redacted_run_knows_its_machine_again_without_its_name(tmp_path: Path, ask: Any) -> None:
    folder = make_folder(tmp_path)
    redactor = Redactor()
    redactor.learn_host_name(HERE[1])
    folder.redact_with(redactor)
    run_whole(folder)
    assert HERE[1] not in (folder.path / "journal.ndjson").read_text()

    again = RunFolder.open(folder.path)
    go_on(again)
    ask(("77aa", HERE[1], HERE[2]))
    with pytest.raises(UsageError, match="began on other machines"):
        go_on(again)


def test_where_nothing_was_measured_any_machine_may_begin(tmp_path: Path, ask: Any) -> None:
    folder = make_folder(tmp_path)
    go_on(folder)
    ask(("77aa", "rack1-09", ()))
    go_on(folder)
    assert len(used(folder)) == 2


def test_this_very_machine_is_known_again(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    run_whole(folder)
    again = RunFolder.open(folder.path)
    go_on(again)
    assert len(used(again)) == 1


@pytest.fixture
def identify(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], UsedMachine]:
    """Makes this machine say who it is with this content of /etc/machine-id; None: the file is missing."""
    path = tmp_path / "machine-id"
    monkeypatch.setattr(stage, "_ASK", stage._ASK.replace("/etc/machine-id", str(path)))

    def ask_this_machine(content: str | None) -> UsedMachine:
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        return asyncio.run(stage._identify(LocalHost(), "run"))

    return ask_this_machine


def test_a_machine_is_known_by_its_name_and_adapters_where_it_has_no_id(
    identify: Callable[[str | None], UsedMachine],
) -> None:
    usual = identify("4f2a\n")
    assert usual.host_name == platform.node()
    assert identify("4f2a") == usual
    for nothing in ("", "\n", None):  # an image that was not booted yet has an empty file
        found = identify(nothing)
        assert found == identify(None)
        assert (found.host_name, found.cards) == (usual.host_name, usual.cards)
        assert found.machine_hash != usual.machine_hash


@pytest.mark.parametrize("answer", ["", "4f2a\n"], ids=["nothing", "no name"])
def test_a_machine_that_does_not_say_who_it_is_is_an_error_with_its_name(answer: str) -> None:
    host = FakeHost("rack1-07")
    host.answer(("sh", "-c"), answer)
    with pytest.raises(HostError, match="rack1-07: it does not say which machine it is"):
        asyncio.run(stage._identify(host, "run"))
