"""What is taken of throughputs of streams that somebody else measured: of ports, clients or all, and their CPU."""

from __future__ import annotations

from typing import Any, Final

from nicbench.methods.base import Values
from nicbench.model.import_table import ImportColumn, ImportTable

ALL_PORTS: Final = "all"
"""In the place of a port's name: the row is of all of them together."""

IMPORTS: Final = ImportTable(
    columns=(
        ImportColumn(value="throughput_bits_per_s", name="throughput", quantity="payload_rate"),
        ImportColumn(value="server_cpu_mean_percent", name="cpu", quantity="percent", also=("server cpu",)),
        ImportColumn(value="server_cpu_minimum_percent", name="least cpu", quantity="percent"),
        ImportColumn(value="server_cpu_maximum_percent", name="most cpu", quantity="percent"),
        ImportColumn(value="retransmissions", name="retransmissions", quantity="count"),
        ImportColumn(value="lost_datagrams_percent", name="datagrams lost", quantity="percent"),
        ImportColumn(value="workload", name="tool", quantity="text", also=("workload",), tells_apart=True),
        ImportColumn(value="mode", name="mode", quantity="text", tells_apart=True),
        ImportColumn(value="port", name="port", quantity="text", tells_apart=True),
        ImportColumn(value="client", name="client", quantity="text", tells_apart=True),
        ImportColumn(value="duplex", name="duplex", quantity="text", tells_apart=True),
        ImportColumn(value="direction", name="direction", quantity="text", tells_apart=True),
        ImportColumn(value="at_once", name="at once", quantity="text", also=("ports at once",), tells_apart=True),
    ),
    any_of=("throughput_bits_per_s",),
    rising=(("server_cpu_minimum_percent", "server_cpu_mean_percent", "server_cpu_maximum_percent"),),
    caption="Payload in Mb/s / busy CPUs of the server in percent, of each port.",
)


def stream_of_import(parameters: dict[str, Any], values: Values) -> tuple[dict[str, Any], Values]:
    """A port's row, a client's at a port, or that of all ports together (``ALL_PORTS``).

    Its mode is the link's speed and duplex, as the published tables have it.
    """
    duplex = parameters.get("duplex")
    said = (parameters.get("link"), f"{duplex} duplex" if duplex else None, parameters.get("mode"))
    mode = ", ".join(text for text in said if text) or parameters.get("workload") or "link not named"
    together = parameters.get("port", "").lower() == ALL_PORTS
    part = "combined" if together else "clients" if "client" in parameters else "ports"
    port = f"port {parameters['port']}" if "port" in parameters else "port not named"
    at_once = parameters.get("at_once", "as the source had it")
    place = {} if together else {"port": port, "beside": at_once}
    told = {"part": part, "mode": mode, "at_once": at_once, **place}
    rate, cpu = values.get("throughput_bits_per_s"), values.get("server_cpu_mean_percent")
    both = throughput_and_cpu(rate, cpu) if isinstance(rate, float) else None
    kept = {name: value for name, value in parameters.items() if name != "port"}
    return {**kept, **told}, {**values, "throughput_and_cpu": both}


def throughput_and_cpu(rate_bits_per_s: object, cpu_percent: object) -> str | None:
    """As published: "88.81 / 24"; the rate alone where nobody knows the CPU."""
    if not isinstance(rate_bits_per_s, float):
        return None
    rate = f"{rate_bits_per_s / 1e6:.5g}"
    return f"{rate} / {cpu_percent:.4g}" if isinstance(cpu_percent, float) else rate
