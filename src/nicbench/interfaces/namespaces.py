"""``create: true`` of a host of kind ``netns``: the namespace is made, says nothing by itself, and leads nowhere."""

from __future__ import annotations

from nicbench.errors import NotReadyError
from nicbench.interfaces.base import Making
from nicbench.labs._veth_network import make_namespace


async def make_namespaces(making: Making) -> None:
    """NotReadyError where one of that name is there already: it is somebody's."""
    for host in making.created:
        if await host.exists():
            raise NotReadyError(
                f"the network namespace {host.namespace} is there already, and nicbench is to make it",
                place=host.name,
                next_step=f"remove `create`, or remove it: ip netns delete {host.namespace}",
            )
        devices = tuple(device for port in making.ports_in(host).values() for device in port.devices)
        await make_namespace(making.changes, host, holding=devices)
        making.tell("namespaces", host.name, host.namespace)
