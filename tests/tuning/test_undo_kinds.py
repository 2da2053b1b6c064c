"""Each kind of undo is a file; records of earlier versions are read and written as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import NotReadyError
from nicbench.core.registry import find
from nicbench.tuning.record import Record, load_record
from nicbench.tuning.undo.base import Undo

GOLDEN = Path(__file__).parent / "golden" / "undo.json"


def test_a_record_with_every_kind_is_read_and_written_as_it_was() -> None:
    record = Record.model_validate_json(GOLDEN.read_bytes())

    assert {entry.undo.kind for entry in record.entries} == set(find("nicbench.tuning.undo", Undo))
    assert record.model_dump_json(indent=1) == GOLDEN.read_text(encoding="utf-8").rstrip("\n")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"kind": "set_link_up"', '"kind": "bend_space"', "does not know an undo of the kind 'bend_space'"),
        ('"kind": "set_link_up",\n    "device"', '"kind": "set_link_up",\n    "interface"', "set_link_up, "),
    ],
    ids=["a kind of a later version", "a field of a later version"],
)
def test_an_undo_of_another_version_is_not_guessed_at(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = tmp_path / "undo.json"
    text = GOLDEN.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")

    with pytest.raises(NotReadyError, match="cannot be read") as caught:
        load_record(path)
    assert words in caught.value.message
