"""What all tests share: a fresh seed for each session, printed for repeating it, and what labs and machines need."""

from __future__ import annotations

import gc
import json
import os
import random
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from nicbench.core.errors import NotReadyError
from nicbench.engine.binaries import find_binary
from nicbench.testbed.vm.programs import find_emulator, find_kernel

from . import repeats, sampling
from .own_mounts import enter_own_mounts

if TYPE_CHECKING:
    from nicbench.hosts.kinds.vm import VmHost

# Timings are never asserted, and the machine may be busy.
settings.register_profile("nicbench", deadline=None, print_blob=True)
settings.load_profile("nicbench")


def pytest_addoption(parser: pytest.Parser) -> None:
    sampling.add_option(parser)
    parser.addoption("--seed", type=int, default=None, help="repeat the random draws of an earlier session")
    parser.addoption(
        "--own-mounts", action="store_true", help="give each worker of xdist mounts of its own, where it is root"
    )


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(50_000, 20, 100)  # as nicbench itself does
    config.pluginmanager.register(repeats)
    if hasattr(config, "workerinput"):
        config.option.seed = config.workerinput["seed"]
    elif config.option.seed is None:
        config.option.seed = secrets.randbits(32)
    if config.option.own_mounts and hasattr(config, "workerinput") and os.geteuid() == 0:
        enter_own_mounts()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of xdist are not told what was drawn here: all draw by the seed that the header shows."""
    node.workerinput["seed"] = node.config.option.seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed of the random draws: {config.option.seed} (repeat with --seed {config.option.seed})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What a test recorded as ``shown``, from whichever process it ran in."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    recorded = (pair for report in reports for pair in getattr(report, "user_properties", ()))
    for text in dict.fromkeys(value for name, value in recorded if name == "shown"):
        terminalreporter.write_line(str(text))


@pytest.fixture
def session_seed(request: pytest.FixtureRequest) -> int:
    """The session's seed, printed in the header."""
    return request.config.option.seed


@pytest.fixture
def draw(session_seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Random draws of this test alone: the same for the same seed, whichever tests run beside it."""
    return random.Random(f"{session_seed}/{request.node.nodeid}")


@pytest.fixture(scope="session", autouse=True)
def _machine_asked_once() -> Iterator[None]:
    """Shares the facts of this machine among the runs of a process: dozens of commands take longer than a short run."""
    from nicbench.stages import plan
    from nicbench.system.inventory.base import Known, collect_host

    shared: Known = {json.dumps({"kind": "local"}): {}}

    async def collect(hosts: Iterable[Any], controller_of: Callable[[str, str], Any]) -> dict[str, dict[str, Any]]:
        known = dict(shared)
        return {
            each.name: await collect_host(each.host, each.devices, known, controller_of(each.role, each.host.name))
            for each in hosts
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "collect", collect)
        yield


class _GuestOnOneWorker(LoadScopeScheduling):
    """Files whose tests share the virtual machine are one worker's; every other test is anybody's.

    xdist's own ``loadgroup`` groups nothing with pytest 9.2, whose items take no other names.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = self.config.rootpath / nodeid.partition("::")[0]
        return "guest" if 'xdist_group("guest")' in path.read_text(encoding="utf-8") else nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling | None:
    return _GuestOnOneWorker(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guest(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[VmHost]:
    """The virtual machine of the session: two NUMA nodes, and a card on each, joined.

    For tests that leave it as they found it. They are of the group ``guest``, so that one worker of xdist has them all.
    """
    from nicbench.hosts import close_ports
    from nicbench.hosts.kinds.local import LocalHost
    from nicbench.hosts.options import VmOptions
    from nicbench.testbed.vm.booting import boot
    from nicbench.tuning.stack import UndoStack

    model = "igb" if find_emulator().has_igb else "e1000e"
    cards = {"n0": {"model": model, "network": "a", "node": 0}, "n1": {"model": model, "network": "a", "node": 1}}
    options = VmOptions.model_validate({"nodes": 2, "memory": 2**30, "cards": cards})
    changes = UndoStack("test-guest-vm", None, tmp_path_factory.mktemp("runtime"))
    try:
        yield (await boot({"guest": options}, changes, LocalHost()))["guest"]
    finally:
        troubles = await changes.undo_all()
        await close_ports()
    assert not troubles


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without what a marker needs its tests are skipped, with the reason in the closing lines."""
    sampling.leave_drawn_cases(config, items)
    for marker in ("lab", "vm", "alone", "acceptance", "sampled"):
        _require_spelt_out(marker, {item.path for item in items if item.get_closest_marker(marker)})
    for marker, why_not in (("lab", _why_no_lab), ("vm", _why_no_vm)):
        marked = [item for item in items if item.get_closest_marker(marker)]
        reason = why_not() if marked else None
        for item in marked if reason is not None else ():
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    gc.freeze()  # ten thousand tests: the collector would look at them all again and again


def _require_spelt_out(marker: str, files: set[Path]) -> None:
    """``scripts/check`` looks for such tests in the files that spell out the marker: to collect all takes long."""
    for path in files:
        if f"pytest.mark.{marker}" not in path.read_text(encoding="utf-8"):
            raise pytest.UsageError(f"{path} has tests marked {marker}: write pytest.mark.{marker} in that file")


def _why_no_lab() -> str | None:
    return _what_lacks("a lab", lambda: find_binary("nicbench-packets"))


def _why_no_vm() -> str | None:
    return _what_lacks("a virtual machine", find_kernel, find_emulator)


def _what_lacks(what: str, *finds: Callable[[], object]) -> str | None:
    if os.geteuid() != 0:
        return f"{what} needs root"
    try:
        for find in finds:
            find()
    except NotReadyError as error:
        return str(error)
    return None
