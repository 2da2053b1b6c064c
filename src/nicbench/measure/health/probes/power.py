"""What processors and their memory drew over a trial (RAPL, ``/sys/class/powercap``).

Only root may read it, since CVE-2020-8694.
"""

from __future__ import annotations

from nicbench.measure.health.base import Energy, HealthView, Probe, number_of, paths_and_values

_ZONE = "/sys/class/powercap/*-rapl:*"


class Power(Probe):
    """Energy of each package, and of its memory, which is apart; other domains are parts of their package."""

    kind = "power"
    of_machine = True

    def script(self, view: HealthView) -> str:
        return f'grep -sH "" {_ZONE}/name {_ZONE}/energy_uj {_ZONE}/max_energy_range_uj'

    def read(self, text: str, view: HealthView) -> tuple[Energy, ...]:
        zones: dict[str, dict[str, list[str]]] = {}
        for path, lines in paths_and_values(text).items():
            folder, _, name = path.rpartition("/")
            zones.setdefault(folder, {})[name] = lines
        energies = []
        for folder, files in zones.items():
            name = (files.get("name") or [""])[0]
            used, largest = number_of(files.get("energy_uj", [])), number_of(files.get("max_energy_range_uj", []))
            if used is None or not name.startswith(("package", "dram", "psys")):
                continue
            package = folder.rpartition("/")[2].split(":")[1]
            where = name if name.startswith("package") else f"{name} of package {package}"
            energies.append(Energy(where, used / 1e6, largest / 1e6 if largest else None))
        return tuple(energies)
