"""What a kind of export works on: a run's document and tables, each made when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from nicbench.core.plan import Plan
from nicbench.export.document import ExportDocument
from nicbench.export.reading import document_of
from nicbench.export.tables import Cell, Column, Table, kind_of, long_table, wide_table
from nicbench.export.text import storable
from nicbench.store.files import PLAN, damaged_error
from nicbench.store.folder import RunFolder

TABLES: Final = ("results", "values", "trials", "rounds")
"""The tables of a run that ``--table`` names."""
_DEEPEST: Final = 100
_SETTINGS: Final = (PLAN, "tuning.json")
_MACHINE: Final = ("inventory.json",)


class ExportSource:
    """A run to be exported; the run folder is read and never changed."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @cached_property
    def document(self) -> ExportDocument:
        """Every result in one shape."""
        return document_of(self.folder)

    @cached_property
    def plan(self) -> Plan | None:
        """The bench file as resolved; None where the run ended before."""
        return self.folder.plan()

    def table(self, name: str) -> Table:
        """One of ``TABLES``."""
        from nicbench.export import arrow  # here: pyarrow takes long to load

        if name == "results":
            return wide_table(self.document)
        if name == "values":
            return long_table(self.document)
        found = arrow.trials(self.folder) if name == "trials" else arrow.rounds(self.folder)
        return arrow.as_table(name, found)

    @cached_property
    def settings(self) -> Table:
        """How the run was made: of the run itself, the plan and the tuning, a row for each setting."""
        return _flat("settings", {"run": self.document.run.model_dump(mode="json"), **self._files(_SETTINGS)})

    @cached_property
    def machine(self) -> Table:
        """What is disclosed of the machines, a row for each fact."""
        return _flat("machine", self._files(_MACHINE))

    def _files(self, names: tuple[str, ...]) -> dict[str, Any]:
        contents = ((name, self.folder.read_json(name)) for name in names)
        found = {name.removesuffix(".json"): content for name, content in contents if content is not None}
        for name, content in found.items():
            if _depth_exceeds(content, _DEEPEST):
                raise damaged_error(ValueError("it is nested too deep"), self.folder.path / f"{name}.json")
        return found


def _flat(name: str, content: dict[str, Any]) -> Table:
    """A row for each value in a tree: where it stands, and what it is."""
    rows: list[tuple[Cell, ...]] = []
    waiting: list[tuple[str, Any]] = [("", content)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict) and value:
            waiting += [(f"{place}.{key}" if place else str(key), each) for key, each in reversed(value.items())]
        elif isinstance(value, list) and value:
            waiting += [(f"{place}[{number}]", each) for number, each in reversed([*enumerate(value)])]
        else:
            rows.append((storable(place), _leaf(value)))
    columns = (Column("setting", about="where it stands"), Column("value", kind_of(row[1] for row in rows)))
    return Table(name, columns, tuple(rows))


def _leaf(value: Any) -> Cell:
    if isinstance(value, str):
        return storable(value)
    return None if isinstance(value, dict | list) else value


def _depth_exceeds(content: Any, most: int) -> bool:
    level = [content]
    for _ in range(most):
        level = [
            each
            for value in level
            if isinstance(value, dict | list)
            for each in (value.values() if isinstance(value, dict) else value)
        ]
        if not level:
            return False
    return True
