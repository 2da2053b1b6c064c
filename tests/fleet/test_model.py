"""Fleet files: combinations, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.fleet import read_fleet
from nicbench.fleet.model import Fleet

GOOD = """\
fleet: 1
benches: [throughput.yaml, latency.yaml]
matrix: {card: [cx5, cx6], kernel: ["6.1", "6.12"], set: [default, low-latency]}
exclude: [{card: cx5, kernel: "6.12"}, {bench: latency, set: default}]
overlays: {set: {low-latency: {tuning: {profile: latency}}}, dut: {n2: {tuning: null}}}
roles: {tester: {role: tester}, dut: {role: dut, card: "{card}", kernel: "k{kernel}"}}
joined_by: cable
repeat: 3
priority: nightly
"""


def read(text: str, folder: Path) -> Fleet:
    path = folder / "fleet.yaml"
    path.write_text(text)
    return read_fleet(path)


def test_every_combination_is_there_but_those_that_are_excluded(tmp_path: Path) -> None:
    cells = read(GOOD, tmp_path).cells()
    assert (
        len(cells) == 9
    )  # 2 bench files x 2 cards x 2 kernels x 2 sets, less 4, less 4 of which 1 was left out already
    assert str(cells[0]) == "throughput, card=cx5, kernel=6.1, set=default"
    assert not any(cell.values["card"] == "cx5" and cell.values["kernel"] == "6.12" for cell in cells)
    assert not any(cell.values["bench"] == "latency" and cell.values["set"] == "default" for cell in cells)


def test_features_of_a_role_have_the_values_of_the_combination(tmp_path: Path) -> None:
    fleet = read(GOOD, tmp_path)
    last = fleet.cells()[-1]
    assert last.features_of(fleet.file.roles["dut"]) == {"role=dut", "card=cx6", "kernel=k6.12"}


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("fleet: 1", "fleet: 2", "1:8", "`fleet` cannot be `2`"),
        ("repeat: 3", "repeats: 3", "8:1", "unknown key `repeats`"),
        ('"6.1"', "6.1", "3:37", "must be text, not `6.1`\n  next: write it in quotes"),
        ("[cx5, cx6]", "[cx5, c x6]", "3:22", "cannot be `c x6`"),
        ("card: cx5,", "cart: cx5,", "4:12", "no axis or role is called `cart`"),
        ("{card: cx5,", "{card: cx4,", "4:18", "the axis `card` has no value `cx4`"),
        ("overlays: {set", "overlays: {sett", "5:12", "no axis or role is called `sett`"),
        ("low-latency: {tuning", "low-latencie: {tuning", "5:18", "has no value `low-latencie`"),
        ("{tuning: {profile", "{tunning: {profile", "5:32", "unknown key"),
        ('"{card}"', '"{cart}"', "6:56", "unknown axis `cart`"),
        ('"{card}"', '"{card"', "6:56", "has a brace without its other one"),
        ('card: "{card}", ', "", "3:10", "the axis `card` changes nothing"),
        ("set: [default, low-latency]", "bench: [a]", "3:53", "is the axis of the bench files"),
        ("latency.yaml]", "other/throughput.yaml]", "2:1", "two bench files have one name"),
        ("repeat: 3", "repeat: 0", "8:9", "it must be at least 1"),
    ],
)
def test_a_mistake_is_refused_with_its_place(old: str, new: str, place: str, message: str, tmp_path: Path) -> None:
    assert old in GOOD
    with pytest.raises(WrongFileError) as refused:
        read(GOOD.replace(old, new, 1), tmp_path)
    assert f"fleet.yaml:{place}: " in str(refused.value)
    assert message in str(refused.value)


def test_one_machine_alone_is_not_joined(tmp_path: Path) -> None:
    with pytest.raises(WrongFileError, match="one machine alone is not joined to another"):
        read("fleet: 1\nbenches: [a.yaml]\nroles: {machine: {lab: veth}}\njoined_by: cable\n", tmp_path)


def test_what_excludes_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFileError, match="every combination is excluded"):
        read("fleet: 1\nbenches: [a.yaml]\nroles: {machine: {lab: veth}}\nexclude: [{bench: a}]\n", tmp_path)


@pytest.mark.parametrize("text", ["", "- 1\n", "fleet\n", "fleet: 1\n"])
def test_what_is_no_fleet_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(WrongFileError):
        read(text, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml: there is no such file"):
        read_fleet(tmp_path / "absent.yaml")
