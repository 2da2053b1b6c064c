"""The settings under which a run was made, as short texts: those of each configuration where they differ."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from nicbench.compare.importance import is_identity, is_volatile, shorten
from nicbench.compare.run_differences import index_by_name, read_settings
from nicbench.core.redaction import is_redacted
from nicbench.store.folder import RunFolder
from nicbench.store.listing import clean

FIRMWARE: Final = "firmware"
"""The name under which the firmware of all adapters under test stands among the settings of a run."""
_CONFIGURATIONS: Final = "configurations"
"""A name that no path has: under it the JSON of the settings has those of each configuration."""
_MOST_SETTINGS: Final = 1000
_MOST_CONFIGURATIONS: Final = 200
_LONGEST_SETTING: Final = 80
_BETWEEN: Final = " / "


class RunSettings(NamedTuple):
    """The settings of a run by their paths as `nicbench diff` names them.

    ``every`` has the values of all machines and configurations, one after the other where they differ. ``own`` has for
    each configuration what is not so there: its own value, or None where it does not have that setting.
    """

    every: Mapping[str, str] = {}
    own: Mapping[str, Mapping[str, str | None]] = {}

    def get(self, path: str, configuration: str) -> str | None:
        """Returns the value of a setting in a configuration; None where it has none."""
        own = self.own.get(configuration)
        return own[path] if own is not None and path in own else self.every.get(path)

    @property
    def text(self) -> str:
        """The settings as JSON: paths and values, and those of configurations under a name of their own."""
        plain = {**self.every, **({_CONFIGURATIONS: self.own} if self.own else {})}
        return json.dumps(plain, sort_keys=True, ensure_ascii=False)


def settings_from(text: str | bytes) -> RunSettings | None:
    """Reads what ``RunSettings.text`` gave from a file that anybody may have written; None where it is no such text."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(plain, dict):
        return None
    own = plain.pop(_CONFIGURATIONS, {})
    if not all(isinstance(value, str) for value in plain.values()) or not isinstance(own, dict):
        return None
    for each in own.values():
        if not isinstance(each, dict) or not all(value is None or isinstance(value, str) for value in each.values()):
            return None
    return RunSettings(plain, own)


def settings_of(folder: RunFolder) -> RunSettings:
    """Returns the settings that a run discloses.

    What differs at every reading, and what identifies one specimen, is left out. NicbenchError where the run cannot be
    read.
    """
    plan = folder.plan()
    names = plan.compared[:_MOST_CONFIGURATIONS] if plan is not None else ()
    every: dict[str, dict[str, None]] = {}
    of_one: dict[str | None, dict[str, dict[str, None]]] = {}
    for place, settings in read_settings(folder).items():
        own = of_one.setdefault(_configuration_of(place, names), {})
        for path, text in islice(_texts(settings), _MOST_SETTINGS):
            every.setdefault(path, {})[text] = None
            own.setdefault(path, {})[text] = None
    joined = {path: _BETWEEN.join(texts) for path, texts in every.items()}
    common = of_one.get(None, {})
    return RunSettings(joined, {name: found for name in names if (found := _own(common, of_one.get(name, {}), joined))})


def _configuration_of(place: str, names: tuple[str, ...]) -> str | None:
    """Returns the configuration whose settings ``read_settings`` has at a place: its name, or a machine's and it."""
    last = place.rpartition(", ")[2]
    return last if last in names else None


def _own(
    common: Mapping[str, Mapping[str, None]], own: Mapping[str, Mapping[str, None]], joined: Mapping[str, str]
) -> dict[str, str | None]:
    """Returns the settings of a configuration that are not those of all of them."""
    found: dict[str, str | None] = {}
    for path, of_all in joined.items():
        text = _BETWEEN.join({**common.get(path, {}), **own.get(path, {})}) or None
        if text != of_all:
            found[path] = text
    return found


def _texts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, value in _leaves(settings, ""):
        if value is None or not _is_setting(path):
            continue
        whole = shorten(value, path, sys.maxsize)
        if is_redacted(whole):
            continue
        text = _short(whole)
        yield clean(path), text
        if path.startswith("inventory.drivers.") and path.endswith(".firmware"):
            yield FIRMWARE, text


def _short(text: str) -> str:
    """Puts a text on one line and cuts a long one; its checksum tells it from others with the same beginning."""
    if len(text) <= _LONGEST_SETTING:
        return clean(text)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{clean(text[:_LONGEST_SETTING])}… #{digest[:6]}"


@lru_cache(maxsize=16384)
def _is_setting(path: str) -> bool:
    return not is_volatile(path) and not is_identity(path)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    members = value if isinstance(value, Mapping) else index_by_name(value)
    if members is None:
        yield path, value
        return
    for name, each in members.items():
        yield from _leaves(each, f"{path}.{name}" if path else str(name))
