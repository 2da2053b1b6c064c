"""Undoing the changes of a run: in reverse order, each once, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from nicbench.core.errors import NicbenchError
from nicbench.hosts.base import Host
from nicbench.tuning.record import Entry, Record
from nicbench.tuning.undo.base import undo_one

MakeHost = Callable[[dict[str, Any]], Host]


async def undo_entries(record: Record, make_host: MakeHost, save: Callable[[Record], None]) -> tuple[Record, list[str]]:
    """Undo what is left of ``record`` in reverse order, saving after each.

    Gives the record back, with what could not be undone.

    A change that fails, in whatever way, stays in the record and the rest goes on; one that somebody else overwrote is
    settled. What failed is tried once more where another undo may have been what it waited for, and in a virtual
    machine, with which it may be gone by then.
    """
    troubles: dict[int, str] = {}
    record = await _undo_each(record, reversed(range(len(record.entries))), troubles, make_host, save)
    left = [index for index in troubles if not record.entries[index].done]
    kinds = {entry.undo.kind for entry in record.entries}
    again = [index for index in left if _is_worth_another_try(record.entries[index], make_host, kinds)]
    if again:
        record = await _undo_each(record, again, troubles, make_host, save)
    return record, list(troubles.values())


def _is_worth_another_try(entry: Entry, make_host: MakeHost, kinds: set[str]) -> bool:
    return bool(entry.undo.retried_after & kinds) or make_host(entry.host).machine.made_here


async def _undo_each(
    record: Record,
    indices: Iterable[int],
    troubles: dict[int, str],
    make_host: MakeHost,
    save: Callable[[Record], None],
) -> Record:
    """Undo those that are not done yet; ``troubles`` gets a sentence of each that was left alone or failed."""
    for index in indices:
        entry = record.entries[index]
        if entry.done:
            continue
        troubles.pop(index, None)
        try:
            host = make_host(entry.host)
            note = await undo_one(host, entry.undo)
            after = None if await host.machine.is_gone() else await entry.undo.read_values(host)
        except Exception as error:  # also what nobody thought of: the machine is put back as far as it can be
            reason = error.message if isinstance(error, NicbenchError) else f"{type(error).__name__}: {error}"
            troubles[index] = f"could not undo ({entry.undo.describe()}): {reason}"
            continue
        if note is not None:
            troubles[index] = note
        finished = entry.replace(done=True, note=note, after=after)
        record = record.replace(entries=(*record.entries[:index], finished, *record.entries[index + 1 :]))
        save(record)
    return record
