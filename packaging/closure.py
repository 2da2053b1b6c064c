"""Prints the part of requirements.lock that an installed program needs: what nicbench depends on, with their hashes.

``closure.py NAME ...`` prints the part of these packages.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(root: Path) -> set[str]:
    """The names of all packages that nicbench needs on Linux, as the environment in ``.venv`` has them.

    Those of its extras are among them: nobody can add them to an installed tree.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = (text for extra in project["optional-dependencies"].values() for text in extra)
    needed_first = [*project["dependencies"], *extras]
    waiting = [Requirement(text) for text in needed_first]
    found: set[str] = set()
    seen: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        if str(requirement) in seen:
            continue
        seen.add(str(requirement))
        found.add(canonicalize_name(requirement.name))
        for text in requires(requirement.name) or ():
            needed = Requirement(text)
            asked = ("", *requirement.extras)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in asked):
                waiting.append(needed)
    return found


if __name__ == "__main__":
    root = Path(__file__).resolve().parents[1]
    wanted = set(sys.argv[1:]) or closure(root)
    for entry in re.split(r"\n(?=[A-Za-z0-9])", (root / "requirements.lock").read_text()):
        if canonicalize_name(entry.split("==")[0]) in wanted:
            sys.stdout.write(entry.rstrip() + "\n")
