"""Between testbed and DUT: the hosts are tuned as the bench file says; tuning.json tells what came of each setting."""

from __future__ import annotations

from collections.abc import Iterable

from nicbench.bench_file.models import BenchFile
from nicbench.errors import HostError, UsageError
from nicbench.events import Bus, Note, StageStarted
from nicbench.hosts.netns import outermost
from nicbench.labs.base import TestHost
from nicbench.model.tuning import Outcome, Tuned, TuningDocument
from nicbench.model.turn import Turn
from nicbench.store.folder import RunFolder
from nicbench.tuning.items.base import CannotSetError
from nicbench.tuning.stack import UndoStack
from nicbench.tuning.tune import look, look_again, refuse, strayed, tune, where
from nicbench.tuning.undo import RestoreSetting
from nicbench.tuning.values import shown
from nicbench.tuning.wishes import ALL, Part, Placed, placed

TUNING = "tuning.json"


class TunedHosts:
    """The settings of one turn, from their application to what they read after the undo."""

    def __init__(
        self, every: tuple[Placed, ...], turn: Turn, changes: UndoStack, folder: RunFolder | None, bus: Bus
    ) -> None:
        self._every = every
        self._rows: list[Tuned] = []
        self._turn = turn
        self._changes = changes
        self._folder = folder
        self._bus = bus
        self._first_entry = len(changes.entries)

    async def apply(self) -> None:
        """Applies and verifies all; NotReadyError names what could not be set. What was done is undone in any case."""
        if not self._every:
            return
        self._bus.publish(StageStarted(stage="tuning", text=f"tuning: {len(self._every)} settings"))
        self._rows = [await look(one, self._turn.configuration, self._turn.run) for one in self._every]
        refuse(self._every, self._rows)
        self._changes.after_undoing(self._see_after)
        self._rows = await tune(self._changes, self._every, self._turn.configuration, self._turn.run)
        # Last, so that it is called first: while processes that hold a setting are still there.
        self._changes.before_undoing(self._see_end)
        for row in self._rows:
            if row.outcome is Outcome.SKIPPED:
                text = f"{where(row)}: {row.item} of the {row.source} was skipped: {row.reason}"
                self._bus.publish(Note(level="info", text=text))
            elif row.outcome is Outcome.NOT_MET:
                text = f"{where(row)}: {row.item} is not as expected: {shown(row.before)}; expected {shown(row.asked)}"
                self._bus.publish(Note(level="warning", text=text))

    async def see_start(self) -> None:
        """Reads all again once DUT and tester stand, and writes tuning.json."""
        await self._see(at_end=False)

    async def _see_end(self) -> None:
        await self._see(at_end=True)

    async def _see(self, *, at_end: bool) -> None:
        if len(self._rows) != len(self._every) or not self._rows:
            return
        self._rows = await look_again(self._every, self._rows, at_end=at_end)
        for sentence in strayed(self._rows, at_end=at_end):
            self._bus.publish(Note(level="warning", text=sentence))
        self._write()

    async def _see_after(self) -> None:
        """The undo of each setting has read it back; what was changed in another way is read once more."""
        settings = self._changes.entries[self._first_entry :]
        for number, (one, row) in enumerate(zip(self._every, self._rows, strict=False)):
            # A sysctl of the machine that was asked for in a namespace is undone at the machine.
            hosts = (one.place.host.spec(), outermost(one.place.host).spec())
            undone = [
                entry
                for entry in settings
                if isinstance(entry.undo, RestoreSetting)
                and (entry.undo.item, entry.undo.device) == (row.item, row.device)
                and entry.host in hosts
                and set(entry.undo.asked) <= set(row.asked or {})
            ]
            known = [entry.after for entry in reversed(undone) if entry.after is not None]
            after = {key: value for values in known for key, value in values.items()} if known else None
            if row.outcome is Outcome.CHANGED and not undone:
                try:
                    now = await one.item.now(one.place)
                    after = {key: now.get(key) for key in row.asked or {}}
                except (CannotSetError, HostError):
                    after = None
            self._rows[number] = row.model_copy(update={"after": after})
        self._write()

    def _write(self) -> None:
        """Replaces the rows of this turn and keeps those of the others."""
        if self._folder is None or not self._folder.path.is_dir():
            return
        known = self._folder.read_json(TUNING)
        earlier = TuningDocument.model_validate(known).settings if known else ()
        mine = (self._turn.configuration, self._turn.run)
        others = tuple(row for row in earlier if (row.configuration, row.run) != mine)
        self._folder.write_json(TUNING, TuningDocument(settings=(*others, *self._rows)))


async def tune_hosts(
    bench: BenchFile, turn: Turn, hosts: Iterable[TestHost], changes: UndoStack, folder: RunFolder, bus: Bus
) -> TunedHosts:
    """Everything that the section `tuning` asks for of this configuration, applied and verified."""
    tuned = TunedHosts(placed(bench.tuning, parts_of(bench, hosts)), turn, changes, folder, bus)
    await tuned.apply()
    return tuned


def parts_of(bench: BenchFile, hosts: Iterable[TestHost]) -> tuple[Part, ...]:
    """The hosts of the testbed with the interfaces of the test; UsageError where one is tuned that takes no part."""
    parts = tuple(
        Part(each.role, each.host, each.devices, bench.controller_of(each.role, each.host.name)) for each in hosts
    )
    known = {ALL, *(part.role for part in parts), *(part.host.name for part in parts)}
    for wish in bench.tuning:
        if wish.role not in known:
            raise UsageError(
                f"the host {wish.role!r} takes no part in the test, so it cannot be tuned",
                place="tuning",
                next_step=f"write one of: {', '.join(sorted(known))}",
            )
    return parts
