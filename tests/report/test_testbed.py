"""The diagram of the testbed: what is cabled to what, every text inside its box, and none over another."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nicbench.bench_file import load
from nicbench.bench_file.models import BenchFile
from nicbench.core.bond import Bond, BondPort
from nicbench.core.plan import Plan, PlannedTest
from nicbench.report.diagram import NARROW, WIDE, Box, Scene, pictures, place_diagram, svg
from nicbench.report.diagram import Text as PlacedText
from nicbench.report.glyphs import shorten, width, wrap
from nicbench.report.html import fragment
from nicbench.report.wiring import Direction, LinkPart, MachinePart, PortPart, Wiring, wiring, wirings

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
LONG = "a-host-with-a-name-that-nobody-would-type.rack-17.room-b.laboratory.example.org"


def plan_of(bench: BenchFile) -> Plan:
    """As a run would write it, as far as a diagram reads it."""
    lab = {} if bench.lab is None else {"kind": bench.lab.kind, **bench.lab.options.model_dump(mode="json")}
    facts = {}
    tester = {}
    if bench.measures == "rounds":
        facts["endpoints"] = (
            endpoints(int(lab["ports"]), int(lab["clients_per_port"])) if lab else endpoints_of_ports(bench)
        )
        facts["namespaces"] = {end["host"]: f"nb-{end['host']}" for end in facts["endpoints"].values()}
    else:
        names = list(bench.ports) or [f"t{number}" for number in range(int(lab.get("ports", 2)))]
        tester["ports"] = [{"name": name, "driver": "net_af_xdp"} for name in names]
        facts["links"] = [f"{name} <-> d{number}" for number, name in enumerate(names)] if lab else []
    return Plan(
        run_id="r",
        title=bench.title,
        nicbench_version="0",
        seed=1,
        lab=lab or None,
        dut={"kind": bench.dut.kind, **bench.dut.options.model_dump(mode="json")},
        link_bits_per_s=10e9,
        link_is_nominal=bool(lab),
        simulated=lab.get("kind") == "simulated",
        facts=facts,
        tester=tester,
        traffic=bench.traffic.model_dump(mode="json"),
        tests=tuple(
            PlannedTest(
                name=test.name,
                method=test.method_kind,
                description="",
                options=test.options.model_dump(mode="json"),
                points=1,
                estimate_s=1.0,
            )
            for test in bench.tests
        ),
    )


def endpoints(ports: int, clients: int, host: str = "server") -> dict[str, dict[str, Any]]:
    """As the lab ``clients`` has them."""
    ends = {f"s{port}": {"host": host, "machine": "local", "address": f"198.18.{port}.1"} for port in range(ports)}
    for port in range(ports):
        for number in range(clients):
            name = f"c{port}{chr(ord('a') + number)}"
            ends[name] = {
                "host": name,
                "machine": "local",
                "address": f"198.18.{port}.{10 + number}",
                "port": f"s{port}",
            }
    return ends


def endpoints_of_ports(bench: BenchFile) -> dict[str, dict[str, Any]]:
    """As the ports of the bench file are, each client with the port that its link leads to."""
    leads_to = {end: other for link in bench.links for end, other in (link, link[::-1])}
    measured = bench.dut.options.model_dump()["host"]
    return {
        name: {"host": port.host, "machine": "local", "address": str(port.ip).partition("/")[0]}
        | ({} if port.host == measured else {"port": leads_to[name]})
        for name, port in bench.ports.items()
    }


def frames(ports: int, **more: Any) -> Plan:
    """A tester and a DUT that are joined by this number of links."""
    names = [f"t{number}" for number in range(ports)]
    known = {
        "tester": {"ports": [{"name": name} for name in names]},
        "facts": {"links": [f"{name} <-> d{name[1:]}" for name in names]},
        **more,
    }
    return Plan(run_id="r", title="t", nicbench_version="0", seed=1, dut={"kind": "bridge"}, **known)


def directions(plan: Plan) -> list[Direction]:
    made = wiring(plan)
    return [link.direction for link in made.links]


def box_of(text: PlacedText) -> Box:
    """The largest rectangle that a text may cover."""
    wide = width(text.words, text.size, bold=text.bold)
    return Box(text.x - wide / 2 if text.centred else text.x, text.y - text.size, wide, text.size * 1.25)


def right(box: Box) -> float:
    return box.x + box.width


def bottom(box: Box) -> float:
    return box.y + box.height


def holds(outer: Box, inner: Box) -> bool:
    slack = 0.01
    begins = outer.x <= inner.x + slack and outer.y <= inner.y + slack
    return begins and right(inner) <= right(outer) + slack and bottom(inner) <= bottom(outer) + slack


def meets(one: Box, other: Box) -> bool:
    return one.x < right(other) and other.x < right(one) and one.y < bottom(other) and other.y < bottom(one)


def assert_sound(scene: Scene) -> None:
    """All of it inside, machines beside each other, ports in machines, no text over a border or another."""
    page = Box(0, 0, scene.width, scene.height)
    frame = scene.around or page
    assert holds(page, frame)
    for box in scene.machines:
        assert holds(frame, box)
    for one, other in combinations(scene.machines, 2):
        assert not meets(one, other)
    for port in scene.ports:
        assert sum(holds(machine, port) for machine in scene.machines) == 1
    for one, other in combinations(scene.ports, 2):
        assert not meets(one, other)
    for text in scene.texts:
        assert holds(frame, box_of(text)), text
        for box in (*scene.machines, *scene.ports):
            assert holds(box, box_of(text)) or not meets(box, box_of(text)) or text.centred, text
    for one, other in combinations(scene.texts, 2):
        assert not meets(box_of(one), box_of(other)), (one, other)
    for cable in scene.cables:
        assert any(port.right == pytest.approx(cable.x1) and port.y < cable.y < port.bottom for port in scene.ports)
        assert any(port.x == pytest.approx(cable.x2) and port.y < cable.y < port.bottom for port in scene.ports)
        for text in scene.texts:
            assert not meets(box_of(text), Box(cable.x1, cable.y - 1, cable.x2 - cable.x1, 2)), text


@pytest.mark.parametrize("wide", [WIDE, NARROW])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_drawn_without_overlap(path: Path, wide: float) -> None:
    for bench in load(path).configurations:
        made = wiring(plan_of(bench))
        assert made.links
        assert_sound(place_diagram(made, wide))


@pytest.mark.parametrize("wide", [WIDE, NARROW])
@pytest.mark.parametrize("ports", [1, 2, 3, 8])
def test_long_names_are_shortened_and_told_whole(ports: int, wide: float) -> None:
    machine = MachinePart(LONG * 3, (LONG, "名前" * 30))
    links = [
        LinkPart(machine, PortPart(f"{number}{LONG}", (LONG,)), machine, PortPart(LONG), "400 Gb/s, " * 9)
        for number in range(ports)
    ]
    scene = place_diagram(Wiring(tuple(links), "words", around=LONG), wide)

    assert_sound(scene)
    assert LONG * 3 in [text.whole for text in scene.texts]


def test_one_way_goes_in_at_the_first_port_and_out_at_the_second() -> None:
    assert directions(frames(2)) == [Direction.RIGHT, Direction.LEFT]


def test_both_ways_go_in_and_out_at_every_port() -> None:
    assert directions(frames(2, traffic={"bidirectional": True})) == [Direction.BOTH] * 2


def test_a_mesh_goes_in_and_out_at_every_port() -> None:
    assert directions(frames(4, traffic={"pattern": "full-mesh"})) == [Direction.BOTH] * 4


def test_incast_goes_in_at_all_ports_but_the_first() -> None:
    assert directions(frames(3, traffic={"pattern": "many-to-one"})) == [
        Direction.LEFT,
        Direction.RIGHT,
        Direction.RIGHT,
    ]


def test_a_loop_comes_back_on_its_own_port() -> None:
    same = [{"transmit": port, "receive": port} for port in range(2)]

    assert directions(frames(2, addressing=same)) == [Direction.BOTH] * 2


def test_the_clients_of_a_port_stand_beside_it() -> None:
    plan = frames(0, facts={"endpoints": endpoints(4, 2)}, tester={})
    made = wiring(plan)

    assert [(link.left.name, link.right.name) for link in made.links][:3] == [
        ("c0a", "s0"),
        ("c0b", "s0"),
        ("c1a", "s1"),
    ]
    assert len(place_diagram(made).ports) == 8 + 4
    assert "4 ports, 2 clients at each" in made.words


def test_a_bond_names_its_ports_and_a_file_server_its_shares() -> None:
    bond = Bond(
        name="bond0", mode="802.3ad", ports=(BondPort(name="eth2", usable=True), BondPort(name="eth3", usable=True))
    )
    disclosed = {"share": {"kind": "nfs"}, "shares": 12}
    plan = frames(0, facts={"endpoints": endpoints(1, 1)}, tester={}, dut_disclosure=disclosed)
    made = wiring(plan, {"s0": bond})

    assert "bond of eth2, eth3" in made.links[0].right.lines
    assert "12 shares by nfs" in made.links[0].right_machine.lines


def test_nothing_is_drawn_where_nothing_is_known() -> None:
    assert wiring(None) is None
    assert wiring(frames(0, facts={}, tester={})) is None


def test_configurations_of_one_testbed_have_one_diagram() -> None:
    other = frames(2).replace(configuration="b")
    same = frames(2).replace(configuration="a", compared=("a", "b"), others=(other,))
    wider = same.replace(others=(frames(4).replace(configuration="b"),))

    assert [name for name, _ in wirings(same)] == [""]
    assert [name for name, _ in wirings(wider)] == ["a", "b"]


def test_it_is_an_image_with_words_in_the_colours_of_the_page_and_hostile_names_do_no_harm() -> None:
    evil = MachinePart('"><script>alert(1)</script>')
    made = Wiring((LinkPart(evil, PortPart("<b>"), evil, PortPart("&")),), 'a "<i>" b')
    text = str(svg(place_diagram(made), made.words))
    root = ElementTree.fromstring(text)

    assert root.get("role") == "img"
    assert root.get("aria-label") == 'a "<i>" b'
    assert "<script" not in text
    assert "#" not in text.replace("&#34;", "").replace("var(--", "").replace(", #", "")
    (figure,) = pictures((("", made),))
    assert fragment(figure).count("<svg ") == 2


def test_widths_are_those_of_the_widest_font() -> None:
    assert width("Wm", 10) > 19
    assert width("i", 10) < 4
    assert width("A", 10, bold=True) > width("A", 10)
    assert shorten("abcdefghij", 40, 10) == "abc…ij"
    assert all(width(line, 10) <= 60 for line in wrap("one two three four five", 60, 10, most=3))


def test_a_bond_is_drawn_in_the_configuration_that_has_it_alone() -> None:
    bond = Bond(name="s0", mode="802.3ad", ports=(BondPort(name="s0p1", usable=True),))
    plan = frames(0, facts={"endpoints": endpoints(1, 1)}, tester={})
    other = plan.replace(configuration="bond")
    both = plan.replace(configuration="one", compared=("one", "bond"), others=(other,))

    drawn = {name: made.links[0].right.lines for name, made in wirings(both, {"bond": {"s0": bond}})}
    assert [("bond of s0p1" in lines) for lines in (drawn["one"], drawn["bond"])] == [False, True]
