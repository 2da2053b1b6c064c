"""Tests of the frozen models: a copy with other values refuses a name that is not a field."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypedDict

import pytest

from nicbench.core.base import Choice, Frozen
from nicbench.core.described import DescribedPlugin, Label, NotEverywhere, OneLine, Shape, Unit, shape_of, words_of
from nicbench.core.errors import NicbenchError, nearest_name, suggest
from nicbench.core.quantity import Ratio, Seconds
from nicbench.core.registry import find
from nicbench.core.result import NearLimit

LIMIT = NearLimit(value="rate", limit="ceiling", text="close")


def test_a_copy_has_the_other_values_and_the_original_keeps_its_own() -> None:
    assert LIMIT.replace(text="closer") == NearLimit(value="rate", limit="ceiling", text="closer")
    assert LIMIT.text == "close"


def test_a_copy_refuses_a_name_that_is_not_a_field() -> None:
    with pytest.raises(TypeError, match="NearLimit has no field txt"):
        LIMIT.replace(txt="closer")


def test_the_choice_of_a_plug_in_takes_options_of_any_name() -> None:
    assert Choice(kind="iperf3").replace(streams=4).options == {"streams": 4}


# The registry: classes by kind, and a malformed file stops start-up by name.


class Animal(ABC):
    @abstractmethod
    def sound(self) -> str: ...


CAT = '''"""A cat."""
from __main__ import Animal

class Cat(Animal):
    kind = "cat"

    def sound(self):
        return "miaow"
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """An importable package with a base, a helper and a cat in it."""
    monkeypatch.setattr(sys.modules["__main__"], "Animal", Animal, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = tmp_path / f"zoo_{abs(hash(request.node.name))}"
    folder.mkdir()
    for name, text in {"__init__": "", "base": "", "_fur": "class Fur: ...\n", "cat": CAT}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def found(package: Path) -> dict[str, type[Animal]]:
    return dict(find(package.name, Animal))  # type: ignore[type-abstract]


def test_a_file_beside_the_base_is_found_by_its_kind(package: Path) -> None:
    (package / "dog.py").write_text(CAT.replace("cat", "dog").replace("Cat", "Dog"))
    assert [(kind, one.__name__) for kind, one in found(package).items()] == [("cat", "Cat"), ("dog", "Dog")]


def test_a_family_in_one_file_is_found_sorted_by_kind(package: Path) -> None:
    family = CAT.replace("cat", "wolf").replace("Cat", "Wolf") + CAT[CAT.index("class") :].replace(
        "cat", "dog"
    ).replace("Cat", "Dog")
    (package / "dogs.py").write_text(family)
    assert list(found(package)) == ["cat", "dog", "wolf"]
    assert find(package.name, Animal).get("dog") is found(package)["dog"]  # type: ignore[type-abstract]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('"""Nothing."""\n', "it defines no Animal"),
        (CAT + CAT[CAT.index("class") :].replace("Cat", "Lion"), "two classes have the kind 'cat'"),
        (CAT, "its kind 'cat' is already taken by"),
        (CAT.replace('kind = "cat"', ""), "Cat has no kind"),
        (CAT.replace('"""A cat."""', "").replace('"cat"', '"bare"'), "it has no docstring"),
    ],
    ids=["no class", "a kind twice in it", "a kind twice", "no kind", "no docstring"],
)
def test_a_malformed_file_is_named_with_what_to_do(package: Path, text: str, says: str) -> None:
    (package / "wrong.py").write_text(text)
    with pytest.raises(NicbenchError) as stopped:
        found(package)
    assert says in stopped.value.message
    assert stopped.value.place == str(package / "wrong.py")
    assert stopped.value.next_step


def test_a_kind_that_is_looked_up_loads_its_file_alone(package: Path) -> None:
    (package / "dogs.py").write_text(CAT.replace("cat", "wolf").replace("Cat", "Wolf"))
    (package / "wrong.py").write_text("raise RuntimeError\n")
    kinds = find(package.name, Animal)  # type: ignore[type-abstract]
    assert kinds["wolf"].__name__ == "Wolf"
    assert f"{package.name}.cat" not in sys.modules
    with pytest.raises(RuntimeError):
        kinds.get("fish")  # no file says that it has it


def test_abstract_and_private_helpers_in_a_file_are_not_offered(package: Path) -> None:
    (package / "dog.py").write_text(
        CAT.replace("cat", "dog").replace("Cat", "Dog") + "\nclass _Puppy(Dog):\n    kind = 'puppy'\n"
    )
    assert set(found(package)) == {"cat", "dog"}


def test_one_is_found_by_its_file_or_among_all_and_none_where_there_is_none(package: Path) -> None:
    (package / "big_dog.py").write_text(CAT.replace("cat", "big-dog").replace("Cat", "Dog"))
    (package / "kitten.py").write_text(CAT.replace('"cat"', '"small cat"').replace("Cat", "Kitten"))
    for kind in ("cat", "big-dog", "small cat", "kitten", "base", "_fur", "fish", "os.path", ""):
        assert find(package.name, Animal).get(kind) is found(package).get(kind)  # type: ignore[type-abstract]


# Units and labels stand where a fact or an option is declared, and contradict no name.


PACKAGES = (
    *("nicbench.methods", "nicbench.search", "nicbench.workloads.tools", "nicbench.tuning.items"),
    *("nicbench.testbed.labs", "nicbench.testbed.duts", "nicbench.testbed.testers", "nicbench.testbed.shares"),
)


class _Part(TypedDict):
    name: str
    size_bytes: int | None


class _Whole(TypedDict):
    parts: list[_Part]
    by_port: Annotated[dict[str, Annotated[int, NotEverywhere]], OneLine()]
    clock: Annotated[int | None, Label("Core clock", alone=True), Unit.HERTZ]


class _Options(Frozen):
    duration: Seconds = 1.0
    shares: tuple[Ratio, ...] = ()
    goals: dict[str, Ratio] | None = None


def test_a_shape_says_what_the_types_and_notes_say() -> None:
    fields = shape_of(_Whole).fields

    assert fields["parts"].fields["size_bytes"].unit is Unit.BYTES
    assert fields["by_port"].entries == Shape(is_everywhere=False)
    assert fields["by_port"].one_line == OneLine()
    assert fields["clock"] == Shape(label="Core clock", is_alone=True, unit=Unit.HERTZ)


def test_a_quantity_of_an_option_knows_its_unit() -> None:
    fields = shape_of(_Options).fields

    assert (fields["duration"].unit, fields["shares"].unit) == (Unit.SECONDS, Unit.RATIO)
    assert fields["goals"].entries == Shape(unit=Unit.RATIO)


@pytest.mark.parametrize(
    ("name", "unit"),
    [("rate_frames_per_s", Unit.FRAMES_PER_S), ("s", Unit.SECONDS), ("cpus", None), ("status", None)],
)
def test_a_name_ends_with_its_unit(name: str, unit: Unit | None) -> None:
    assert Unit.of_name(name) is unit


def test_a_name_in_words_is_without_its_unit() -> None:
    assert words_of("receive_irq_time_us") == "Receive IRQ time"


def test_no_declared_unit_contradicts_the_name() -> None:
    facts = find("nicbench.system.inventory.facts", DescribedPlugin).values()
    shapes = [(fact.kind, fact.shape) for fact in facts]
    shapes += [(each.kind, each.Options) for package in PACKAGES for each in find(package, DescribedPlugin).values()]
    wrong = [
        path
        for kind, declared in shapes
        for path, name, shape in _fields(shape_of(declared), kind)
        if Unit.of_name(name) not in (None, shape.unit) and not (name.endswith("_share") and shape.unit is Unit.RATIO)
    ]

    assert len(shapes) > 100
    assert wrong == []


def test_every_fact_says_what_it_is() -> None:
    assert [
        kind for kind, fact in find("nicbench.system.inventory.facts", DescribedPlugin).items() if fact.shape is None
    ] == []


def _fields(shape: Shape, above: str) -> Iterator[tuple[str, str, Shape]]:
    for name, part in shape.fields.items():
        yield f"{above}.{name}", name, part
        yield from _fields(part, f"{above}.{name}")
    if shape.entries is not None:
        yield from _fields(shape.entries, f"{above}[]")


# The name that was probably meant: what a newcomer writes leads to what nicbench calls it.


METHODS = (
    "back-to-back",
    "broadcast-throughput",
    "frame-loss",
    "latency",
    "microburst",
    "tcp-throughput",
    "throughput",
)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("rfc2544-throughput", "throughput"),
        ("RFC2544_latency", "latency"),
        ("throughputs", "throughput"),
        ("tcp_throughput", "tcp-throughput"),
        ("tcp", "tcp-throughput"),
        ("loss", "frame-loss"),
        ("back2back", "back-to-back"),
        ("LATENCY", "latency"),
        ("--", None),
        ("", None),
        ("power", None),
    ],
)
def test_the_name_that_was_meant_is_found(given: str, meant: str | None) -> None:
    assert nearest_name(given, METHODS) == meant


def test_where_nothing_is_alike_all_names_are_told() -> None:
    assert suggest("quality", ("latency", "power"), "test method") == "known test methods: `latency`, `power`"
