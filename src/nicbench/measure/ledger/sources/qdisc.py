"""What queueing disciplines dropped (``tc -s qdisc``): the root of each interface, and the hooks of its tc filters.

A root counts what its classes and leaves dropped as well (``qdisc_tree_reduce_backlog``, the sum in ``mq_dump``), so
that only roots are read.
"""

from __future__ import annotations

import json

from nicbench.measure.ledger.base import Count, Side, Source, Stage, View

_HOOKS = ("ingress", "clsact")


class Qdisc(Source):
    """Per interface: the root's drops, and those of filters at its ingress hook."""

    kind = "qdisc"

    def script(self, view: View) -> str:
        return "tc -s -j qdisc show" if view.devices else ""

    def read(self, text: str, view: View) -> tuple[Count, ...]:
        counts = []
        for qdisc in json.loads(text) if text.strip() else ():
            device, kind = str(qdisc.get("dev")), str(qdisc.get("kind"))
            hook = kind in _HOOKS
            if device not in view.devices or not (hook or qdisc.get("root")):
                continue
            handle = f" {qdisc['handle']}" if qdisc.get("handle", "0:") != "0:" else ""
            ingress = view.stage(Stage.TESTER_INGRESS, Stage.DUT_INGRESS)
            counts.append(
                Count(
                    key=view.key(device, f"qdisc {kind}{handle}"),
                    name=f"{device} qdisc {kind}{handle} drops",
                    frames=int(qdisc.get("drops", 0)),
                    stage=ingress if hook else view.stage(Stage.TESTER_QDISC, Stage.DUT_QDISC),
                    place=f"{view.side}, {'tc filter' if hook else f'{kind} qdisc'} of {device}",
                    by_tester=view.side is not Side.DUT and not hook,
                )
            )
        return tuple(counts)
