"""Bench files of tests that send frames, drawn: every method, search, pattern and number of runs."""

from __future__ import annotations

import json
import random

LINKS = (1e7, 1e8, 1e9, 10e9, 25e9, 100e9, 400e9)
SIZES = (64, 65, 128, 256, 512, 1024, 1280, 1518, 9018)
AFTER_THROUGHPUT = ("latency", "back-to-back", "system-recovery", "reset", "soak", "maximum-forwarding-rate")
ALONE = (
    "frame-loss",
    "load-sweep",
    "soak",
    "single-core",
    "impairments",
    "connection-capacity",
    "service-activation",
)
METHODS = ("throughput", *dict.fromkeys((*AFTER_THROUGHPUT, *ALONE)))
SEARCHES = ("guided", "mlr", "step-down")


def frame_bench(draw: random.Random, method: str) -> tuple[dict[str, object], str]:
    """The bench file of a run that has a test of this method, as a dictionary and as text."""
    sizes = sorted(draw.sample(SIZES, draw.choice((1, 1, 2, 3))))
    needs = method in AFTER_THROUGHPUT and not (method == "soak" and draw.random() < 0.5)
    tests = []
    goals = draw.choice(({"NDR": "0 %"}, {"NDR": "0 %", "PDR": "0.5 %"}, {"NDR": "0 %", "half": "50 %"}))
    if method == "throughput" or needs:
        tests.append(_throughput(draw, sizes, goals))
    more = [method, draw.choice(AFTER_THROUGHPUT)] if method == "throughput" else [method]
    for number, kind in enumerate(more):
        if kind != "throughput":
            tests.append(_test(draw, kind, f"{kind}-{number}" if number else kind, sizes, goals, bool(tests)))
    ports = draw.choice((2, 2, 2, 2, 4))
    patterns = (
        ["one-to-one"] if ports == 2 else ["one-to-one", "full-mesh", "many-to-one", "one-to-many", "group-to-group"]
    )
    pattern = "one-to-one" if "service-activation" in more else draw.choice(patterns)
    bench = {
        "nicbench": 1,
        "title": f"Drawn {method}",
        "seed": draw.randrange(1, 10**6),
        "lab": {"kind": "simulated", "ports": ports, "link": f"{draw.choice(LINKS) / 1e6:g} Mb/s"},
        "dut": {"kind": "simulated"},
        "traffic": {"pattern": pattern, "bidirectional": draw.random() < 0.3 and pattern != "full-mesh"},
        "tests": tests,
        "monitor": "off",
    }
    runs = draw.choice((1, 1, 1, 2, 3, 5, "growing"))
    if runs == "growing":
        bench["runs"] = {"warm_up": draw.choice((0, 1)), "at_least": 2, "at_most": 4, "until": "1 %"}
    elif runs != 1:
        bench["runs"] = runs
    if draw.random() < 0.35:
        names = ("wide", "narrow", "third")[: draw.choice((2, 2, 3))]
        bench["configurations"] = {
            name: {"lab": {"delay": f"{10 * number + 10} us"}} for number, name in enumerate(names)
        }
    return bench, json.dumps(bench, indent=1)


def _times(draw: random.Random) -> dict[str, str]:
    return {"duration": draw.choice(("100 ms", "1 s", "1 s", "10 s")), "drain": "10 ms", "settle": "1 ms"}


def _throughput(draw: random.Random, sizes: list[int], goals: dict[str, str]) -> dict[str, object]:
    search = {
        "kind": draw.choice(SEARCHES),
        "goals": goals,
        "precision": draw.choice(("0.5 %", "1 %", "5 %")),
        "maximum_trials": draw.choice((4, 10, 20)),
        "minimum_load": "10 pps",
        "validation": draw.choice(("0 s", "2 s")),
    }
    return {
        "name": "throughput",
        "method": "throughput",
        "frame_bytes": sizes,
        "search": search,
        "trial": _times(draw),
    }


def _test(
    draw: random.Random, kind: str, name: str, sizes: list[int], goals: dict[str, str], after: bool
) -> dict[str, object]:
    test = {"name": name, "method": kind, "frame_bytes": sizes}
    of = draw.choice(list(goals))
    if kind in AFTER_THROUGHPUT and after:
        test["at"] = "throughput"
        if kind != "maximum-forwarding-rate":
            test["of"] = of
    pauses = {"drain": "10 ms", "settle": "1 ms"}
    times = _times(draw)
    rate = draw.choice(("line_rate", "highest", "50 kpps"))
    if kind == "latency":
        test |= {"loads": draw.choice((["100 %"], ["100 %", "50 %"], ["90 %", "10 %", "1 %"])), "trial": times}
    elif kind == "frame-loss":
        test |= {"of": rate, "load_step": "10 %", "trial": times}
    elif kind == "load-sweep":
        test |= {"of": rate, "loads": draw.choice((["50 %"], ["100 %", "75 %", "10 %", "1 %"])), "trial": times}
    elif kind == "connection-capacity":
        test |= {"connections": draw.choice((2, 100)), "rate": "20 kpps", "precision": "10 %", "trial": pauses}
    elif kind == "back-to-back":
        test |= {
            "repetitions": draw.choice((1, 3)),
            "longest_burst": "100 ms",
            "step_frames": 500,
            "trial": pauses,
            "rate": rate,
        }
        test["loss_verification"] = draw.choice((0, 1))
    elif kind == "system-recovery":
        test |= {
            "repetitions": draw.choice((1, 3)),
            "trial": {"overload_time": "1 s", "recovery_time": "1 s", **pauses},
        }
    elif kind == "reset":
        test |= {
            "command": ["true"],
            "host": "local",
            "frame_bytes": sizes[:1],
            "repetitions": draw.choice((1, 2)),
            "trial": {"duration": "1 s", "after": "1 ms", **pauses},
        }
    elif kind == "soak":
        test["trial"] = {"duration": "5 s", "interval": "1 s", "drain": "10 ms"}
        if not after:
            test["rate"] = rate
        if draw.random() < 0.3:
            test["critical_load"] = {"duration": "12 s", "first_trial": "1 s", "minimum_load": "10 pps"}
    elif kind == "impairments":
        test |= {"rate": rate, "trial": times}
    elif kind == "service-activation":
        del test["frame_bytes"]
        cir, eir = draw.choice(("1 Mb/s", "100 Mb/s")), draw.choice(("0 b/s", "10 kb/s", "50 Mb/s"))
        accept = draw.choice(
            ({}, {"loss": "1 %", "delay": "1 ms", "delay_variation": "10 us"}, {"availability": "99 %"})
        )
        test["services"] = [{"name": "gold", "frame_bytes": sizes[0], "cir": cir, "eir": eir, "accept": accept}]
        test["trial"] = {"step": "1 s", "performance": draw.choice(("0 s", "2 s")), "drain": "10 ms", "settle": "1 ms"}
    else:
        test["trial"] = times
    return test
