"""Sensors of hwmon: thousandths of a degree Celsius (Documentation/hwmon/sysfs-interface.rst).

``temp*_crit`` is where a part protects itself, ``temp*_max`` where it should not stay.
"""

from __future__ import annotations

from nicbench.measure.health.base import number_of, paths_and_values

LARGEST = 32


def chips(text: str) -> dict[str, tuple[str, float, float | None]]:
    """By folder: the chip's name, and of its sensors the one nearest to its limit: degrees, limit."""
    files: dict[str, dict[str, list[str]]] = {}
    for path, lines in paths_and_values(text).items():
        folder, _, name = path.rpartition("/")
        files.setdefault(folder, {})[name] = lines
    found = {}
    for folder, chip in list(files.items())[:LARGEST]:
        hottest = _hottest(chip)
        if hottest is not None:
            found[folder] = ((chip.get("name") or ["sensor"])[0], *hottest)
    return found


def _hottest(files: dict[str, list[str]]) -> tuple[float, float | None] | None:
    found: list[tuple[float, float | None]] = []
    for name, lines in files.items():
        value = number_of(lines)
        if not name.endswith("_input") or value is None or not -100_000 < value < 300_000:
            continue
        limits = (number_of(files.get(name.replace("_input", end), [])) for end in ("_crit", "_max"))
        limit = next((limit / 1000 for limit in limits if limit and 0 < limit < 300_000), None)
        found.append((value / 1000, limit))
    return max(found, key=lambda sensor: (sensor[0] / sensor[1] if sensor[1] else 0.0, sensor[0]), default=None)
