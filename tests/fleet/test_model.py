"""Fleet files: combinations, and every mistake with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicbench.bench_file import WrongBenchFileError, parse
from nicbench.bench_file.reader import Node, read
from nicbench.core.errors import Position, UsageError, WrongFileError
from nicbench.fleet import read_fleet
from nicbench.fleet.model import Fleet, bind_tree, check_cell, tree_of, write_tree

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


def read_model(text: str, folder: Path) -> Fleet:
    path = folder / "fleet.yaml"
    path.write_text(text)
    return read_fleet(path)


def test_every_combination_is_there_but_those_that_are_excluded(tmp_path: Path) -> None:
    cells = read_model(GOOD, tmp_path).cells()
    assert (
        len(cells) == 9
    )  # 2 bench files x 2 cards x 2 kernels x 2 sets, less 4, less 4 of which 1 was left out already
    assert str(cells[0]) == "throughput, card=cx5, kernel=6.1, set=default"
    assert not any(cell.values["card"] == "cx5" and cell.values["kernel"] == "6.12" for cell in cells)
    assert not any(cell.values["bench"] == "latency" and cell.values["set"] == "default" for cell in cells)


def test_features_of_a_role_have_the_values_of_the_combination(tmp_path: Path) -> None:
    fleet = read_model(GOOD, tmp_path)
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
        read_model(GOOD.replace(old, new, 1), tmp_path)
    assert f"fleet.yaml:{place}: " in str(refused.value)
    assert message in str(refused.value)


def test_one_machine_alone_is_not_joined(tmp_path: Path) -> None:
    with pytest.raises(WrongFileError, match="one machine alone is not joined to another"):
        read_model("fleet: 1\nbenches: [a.yaml]\nroles: {machine: {lab: veth}}\njoined_by: cable\n", tmp_path)


def test_what_excludes_everything_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFileError, match="every combination is excluded"):
        read_model("fleet: 1\nbenches: [a.yaml]\nroles: {machine: {lab: veth}}\nexclude: [{bench: a}]\n", tmp_path)


@pytest.mark.parametrize("text", ["", "- 1\n", "fleet\n", "fleet: 1\n"])
def test_what_is_no_fleet_file_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(WrongFileError):
        read_model(text, tmp_path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.yaml: there is no such file"):
        read_fleet(tmp_path / "absent.yaml")


# Bench files of combinations: what an axis and a node change, and the addresses of machines.

BENCH = """\
nicbench: 1
title: Two machines   # a comment
hosts:
  tester: {}
  dut: {user: root, key: /keys/rack}
ports:
  t0: {host: tester, device: data0}
  t1: {host: tester, device: data1}
  d0: {host: dut, device: data0, ip: 198.18.0.1/24}
  d1: {host: dut, device: data1, ip: 198.18.1.1/24}
links: [t0 <-> d0, t1 <-> d1]
dut: kernel-forward
tests: [{name: t, method: throughput, frame_bytes: [64, 512]}]
"""
FLEET = """\
fleet: 1
benches: [bench.yaml]
matrix: {set: [default, small]}
overlays:
  set: {small: {tests: {t: {frame_bytes: [SIZES]}}}}
  dut: {n4: {ports: {d0: {device: ens1f0}}}}
roles: {tester: {role: tester}, dut: {role: dut}}
"""
NODES = {"tester": ["n1"], "dut": ["n2", "n4"]}


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return make(tmp_path, FLEET.replace("SIZES", "64"))


def make(folder: Path, text: str) -> Fleet:
    (folder / "bench.yaml").write_text(BENCH)
    (folder / "fleet.yaml").write_text(text)
    return read_fleet(folder / "fleet.yaml")


def test_hosts_that_are_roles_get_the_addresses_of_their_machines(fleet: Fleet) -> None:
    tree = tree_of(fleet, fleet.cells()[0])
    bound = bind_tree(tree, fleet, {"tester": None, "dut": "10.0.0.2"}, {"tester": "n1", "dut": "n2"})
    bench = parse(write_tree(bound).encode(), Path("bench.yaml"))
    assert bench.written["hosts"] == {
        "tester": {"kind": "local"},
        "dut": {"kind": "ssh", "address": "10.0.0.2", "user": "root", "key": "/keys/rack"},
    }
    assert bench.written["ports"]["d0"]["device"] == "data0"


def test_a_node_changes_what_is_its_own(fleet: Fleet) -> None:
    bound = bind_tree(tree_of(fleet, fleet.cells()[0]), fleet, {}, {"dut": "n4"}).plain()
    assert bound["ports"]["d0"] == {"host": "dut", "device": "ens1f0", "ip": "198.18.0.1/24"}


def test_a_value_of_an_axis_changes_the_bench_file(fleet: Fleet) -> None:
    default, small = (tree_of(fleet, cell).plain()["tests"][0]["frame_bytes"] for cell in fleet.cells())
    assert (default, small) == ([64, 512], [64])


def test_a_combination_that_is_valid_on_every_machine_has_a_time(fleet: Fleet) -> None:
    one, other = (check_cell(fleet, cell, NODES) for cell in fleet.cells())
    assert one > other > 0.0


def test_a_mistake_of_an_overlay_stands_in_the_fleet_file(tmp_path: Path) -> None:
    fleet = make(tmp_path, FLEET.replace("SIZES", "9"))
    check_cell(fleet, fleet.cells()[0], NODES)
    with pytest.raises(WrongBenchFileError) as refused:
        check_cell(fleet, fleet.cells()[1], NODES)
    assert f"{tmp_path}/fleet.yaml:5:43: with bench, set=small: " in str(refused.value)


def test_a_mistake_of_one_machine_alone_is_found(tmp_path: Path) -> None:
    text = FLEET.replace("SIZES", "64").replace("device: ens1f0", "devise: ens1f0")
    fleet = make(tmp_path, text)
    with pytest.raises(WrongBenchFileError, match=r"fleet\.yaml:6:27: with bench, set=default: unknown key"):
        check_cell(fleet, fleet.cells()[0], NODES)


def test_a_mistake_of_the_bench_file_stands_there(tmp_path: Path) -> None:
    fleet = make(tmp_path, FLEET.replace("SIZES", "64"))
    (tmp_path / "bench.yaml").write_text(BENCH.replace("method: throughput", "method: thruput"))
    with pytest.raises(WrongBenchFileError, match=r"bench\.yaml:13:27: "):
        check_cell(fleet, fleet.cells()[0], NODES)


def test_a_bench_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    fleet = make(tmp_path, FLEET.replace("SIZES", "64"))
    (tmp_path / "bench.yaml").unlink()
    with pytest.raises(UsageError, match=r"bench\.yaml: there is no such file"):
        check_cell(fleet, fleet.cells()[0], NODES)


def test_names_of_files_of_a_hypervisor_are_made_absolute(tmp_path: Path) -> None:
    fleet = make(tmp_path, FLEET.replace("SIZES", "64"))
    (tmp_path / "bench.yaml").write_text(BENCH + "hypervisor: {dut: {libvirt: dut.xml}}\n")
    tree = tree_of(fleet, fleet.cells()[0]).plain()
    assert tree["hypervisor"] == {"dut": {"libvirt": str(tmp_path / "dut.xml")}}


Scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["C"]), max_size=200),
)


@given(
    st.dictionaries(
        st.text("abcNn-y0. ", min_size=1, max_size=8),
        st.one_of(Scalars, st.lists(Scalars), st.dictionaries(st.text("xy", min_size=1), Scalars)),
    )
)
def test_what_is_written_reads_as_the_same(content: dict[str, object]) -> None:
    assert read(write_tree(_node(content)).encode(), "bench.yaml").plain() == content


def _node(value: object) -> Node:
    at = Position(1, 1)
    if isinstance(value, dict):
        return Node(at, entries={key: _node(one) for key, one in value.items()})
    if isinstance(value, list):
        return Node(at, items=[_node(one) for one in value])
    return Node(at, value=value)
