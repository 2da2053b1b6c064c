"""The registry: classes by kind, and a malformed file stops start-up by name."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from pathlib import Path

import pytest

from nicbench.core.errors import NicbenchError
from nicbench.core.registry import find, find_one


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
    return find(package.name, Animal)  # type: ignore[type-abstract]


def test_a_file_beside_the_base_is_found_by_its_kind(package: Path) -> None:
    (package / "dog.py").write_text(CAT.replace("cat", "dog").replace("Cat", "Dog"))
    assert [(kind, one.__name__) for kind, one in found(package).items()] == [("cat", "Cat"), ("dog", "Dog")]


def test_a_family_in_one_file_is_found_sorted_by_kind(package: Path) -> None:
    family = CAT.replace("cat", "wolf").replace("Cat", "Wolf") + CAT[CAT.index("class") :].replace(
        "cat", "dog"
    ).replace("Cat", "Dog")
    (package / "dogs.py").write_text(family)
    assert list(found(package)) == ["cat", "dog", "wolf"]
    assert find_one(package.name, Animal, "dog") is found(package)["dog"]  # type: ignore[type-abstract]


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


def test_abstract_and_private_helpers_in_a_file_are_not_offered(package: Path) -> None:
    (package / "dog.py").write_text(
        CAT.replace("cat", "dog").replace("Cat", "Dog") + "\nclass _Puppy(Dog):\n    kind = 'puppy'\n"
    )
    assert set(found(package)) == {"cat", "dog"}


def test_one_is_found_by_its_file_or_among_all_and_none_where_there_is_none(package: Path) -> None:
    (package / "big_dog.py").write_text(CAT.replace("cat", "big-dog").replace("Cat", "Dog"))
    (package / "kitten.py").write_text(CAT.replace('"cat"', '"small cat"').replace("Cat", "Kitten"))
    for kind in ("cat", "big-dog", "small cat", "kitten", "base", "_fur", "fish", "os.path", ""):
        assert find_one(package.name, Animal, kind) is found(package).get(kind)  # type: ignore[type-abstract]
