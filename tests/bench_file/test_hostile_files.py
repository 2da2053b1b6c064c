"""Files made to hurt: refused before they cost memory or time. Memory is asserted, time by a bound on what is read."""

import re
import tracemalloc
from collections.abc import Callable

import pytest

from nicbench.bench_file import BenchFile, WrongBenchFileError
from nicbench.bench_file.reader import LARGEST_FILE_BYTES

Read = Callable[[str | bytes], BenchFile]
MEBIBYTE = 2**20

BOMB = 'a: &a ["x", "x", "x", "x", "x", "x", "x", "x", "x"]\n' + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)

HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "a bomb of aliases": (BOMB, "expands to more than"),
    "an alias inside what it names": ("a: &a [*a]\n", "is inside the value that it names"),
    "ten thousand lists in a list": ("a: " + "[" * 10_000 + "]" * 10_000, "levels are nested"),
    "ten thousand mappings in a mapping": ("a: " + "{a: " * 10_000, "levels are nested"),
    "ten thousand levels of dashes": ("- " * 10_000 + "x", "levels are nested"),
    "a scalar larger than any bench file": (b"title: " + b"x" * (LARGEST_FILE_BYTES + 1), "larger than"),
    "a list of very many values": ("a: [" + "1," * 20_000 + "1]", "expands to more than"),
    "a number of a thousand digits": ("seed: " + "9" * 1000, "too long"),
    "a number of astronomic size": ("seed: 1e9999", "1e9999 is too large a number"),
    "a NUL byte": (b"nicbench: \x001", "U+0000"),
    "an escape character": (b"title: \x1b[31mred", "U+001B"),
    "an escape character that is written as one": (b'title: "\\e[31mred"', "b.yaml:1:8: the character U+001B"),
    "a NUL byte that is written as an escape": (b'"a\\0b": 1', "b.yaml:1:1: the character U+0000"),
    "half a pair of surrogates": (b'declared: {switch: "\\ud800"}', "b.yaml:1:20: the character U+D800"),
    "a number that overflows": ("declared: {switch: 1e400}", "b.yaml:1:20: 1e400 is too large a number"),
    "a Python object": ("a: !!python/object/apply:os.system ['true']", "tag"),
    "a tag of one's own": ("a: !secret x", "tag"),
    "UTF-16": ("nicbench: 1\n".encode("utf-16"), "not UTF-8"),
    "half a character": (b"title: \xc3", "not UTF-8"),
    "a key that is a mapping": ("? {a: b}\n: c", "a key must be a word"),
}


@pytest.mark.parametrize(("content", "message"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_refused_in_bounded_memory(content: str | bytes, message: str, read: Read) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WrongBenchFileError, match=re.escape(message)):
            read(content)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 64 * MEBIBYTE


def test_a_message_about_a_huge_value_stays_short(read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read("nicbench: " + "x" * 100_000)
    assert len(refused.value.message) < 200


def test_many_problems_are_told_in_a_bounded_message(read: Read) -> None:
    with pytest.raises(WrongBenchFileError) as refused:
        read("".join(f"key{number}: 1\n" for number in range(500)))
    assert len(refused.value.problems) > 500
    assert len(str(refused.value).splitlines()) < 60
    assert "more problems" in str(refused.value)
