"""What differs between the configurations of a bench file: every setting that an overlay gives, in all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nicbench.bench_file.models import BenchFile
from nicbench.model.plan import Difference

_Path = tuple[str, ...]
_NOT_GIVEN = object()


def differences(bench: BenchFile) -> tuple[Difference, ...]:
    """One row for each setting that is not the same in all configurations; None where one does not give it."""
    written = {each.configuration: _by_names(each.written) for each in bench.configurations}
    paths = dict.fromkeys(path for content in written.values() for path in _leaves(content))
    rows = []
    for path in paths:
        values = {name: _at(content, path) for name, content in written.items()}
        texts = {name: None if value is _NOT_GIVEN else _text(value) for name, value in values.items()}
        if len(set(texts.values())) > 1:
            rows.append(Difference(setting=".".join(path), values=texts))
    return tuple(rows)


def _by_names(written: Mapping[str, Any]) -> dict[str, Any]:
    """With the tests by their names, in place of their numbers."""
    sections = {key: _section(value) if key in ("lab", "dut", "tester") else value for key, value in written.items()}
    hosts = {name: _section(host) for name, host in written.get("hosts", {}).items()}
    tests = {test["name"]: {key: value for key, value in test.items() if key != "name"} for test in written["tests"]}
    return {**sections, "hosts": hosts, "tests": tests}


def _section(value: Any) -> Any:
    """A kind may stand alone."""
    return {"kind": value} if isinstance(value, str) else value


def _leaves(content: Any, path: _Path = ()) -> Iterator[_Path]:
    if isinstance(content, dict) and content:
        for key, value in content.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path


def _at(content: Any, path: _Path) -> Any:
    for step in path:
        if not isinstance(content, dict) or step not in content:
            return _NOT_GIVEN
        content = content[step]
    return content


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
