"""Emulated routers: what the daemon is told of them, what it tells, and flows to the routes that they announce."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from nicbench.otg import bird
from nicbench.otg.bgp import Router
from nicbench.otg.configuration import Configuration
from nicbench.otg.model import INVALID, NOT_IMPLEMENTED

from .frames import frame_of
from .test_devices import addresses_of, device, flow, read, refused

GATEWAYS = {(f"e{number}", ip_address(f"10.0.{port}.254")): "02:00:00:00:00:fe" for number, port in ((1, 1), (3, 2))}
SHOWN = """BIRD 2.0.12 ready.
Name       Proto      Table      State  Since         Info
p0r0       Static     t0v4       up     18:28:06.980
  Channel ipv4
    Route change stats:     received   rejected   filtered    ignored   accepted
      Import updates:              9          0          0          0          9

p0         BGP        ---        up     18:28:07.880  Established
  BGP state:          Established
    Neighbor address: 10.98.0.2
  Channel ipv4
    State:          UP
    Routes:         1 imported, 0 exported, 1 preferred
    Route change stats:     received   rejected   filtered    ignored   accepted
      Import updates:              4          1          0          0          3
      Import withdraws:            1          0        ---          0          1
      Export updates:              3          1          0        ---          2
      Export withdraws:            2        ---        ---        ---          2
  Channel ipv6
    Route change stats:     received   rejected   filtered    ignored   accepted
      Import updates:              5          0          0          0          5
      Import withdraws:            0          0        ---          0          0
      Export updates:              7          0          0        ---          7
      Export withdraws:            0        ---        ---        ---          0

p1         BGP        ---        start  18:28:06.980  Active        Socket: Connection refused
  BGP state:          Active
"""
ROUTES = """Table t0v4:
203.0.113.0/24       unreachable [p0 18:28:08.160 from 10.98.0.2] * (100) [AS65003i]
\tType: BGP univ
\tBGP.origin: IGP
\tBGP.as_path: 65002 65003 {1 2}
\tBGP.next_hop: 10.98.0.2
\tBGP.med: 7
\tBGP.local_pref: 100
\tBGP.community: (1,2) (65535,65281)
198.51.100.0/24      unreachable [p0 18:28:08.160 from 10.98.0.2] * (100) [AS65002?]
\tBGP.origin: Incomplete
"""
LOG = """2026-11-30 18:28:07.880 <TRACE> p0: Sending OPEN(ver=4,as=65001,hold=90,id=c0000201)
2026-11-30 18:28:07.880 <TRACE> p0: Got OPEN(as=65002,hold=240,id=192.0.2.2)
2026-11-30 18:28:07.880 <TRACE> p0: BGP session established
2026-11-30 18:28:08.160 <TRACE> p0: Sending UPDATE
2026-11-30 18:28:08.203 <TRACE> p0: Got END-OF-RIB
2026-11-30 18:28:11.891 <RMT> p0: Received: Administrative shutdown
2026-11-30 18:28:11.891 <TRACE> p0: BGP session closed
2026-11-30 18:28:12.787 <TRACE> p0: BGP session closed
2026-11-30 18:28:16.916 <TRACE> p0: Sending NOTIFICATION(code=6.2)
bird: a.conf:3:1 syntax error"""


def routes(name: str, address: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "addresses": [{"address": address, "prefix": 28, "count": 4, "step": 2}]} | members


def peer(name: str = "peer", **members: Any) -> dict[str, Any]:
    return {"name": name, "peer_address": "10.0.2.254", "as_type": "ebgp", "as_number": 65001} | members


def router(*peers: dict[str, Any], **members: Any) -> dict[str, Any]:
    interfaces = [{"ipv4_name": "i3", "peers": list(peers)}]
    return device(3, 2) | {"bgp": {"router_id": "192.0.2.3", "ipv4_interfaces": interfaces} | members}


def told(*peers: dict[str, Any]) -> str:
    """What the daemon is told of a router with these peers."""
    return "\n".join(bird.configuration_of(made(*peers)))


def made(*peers: dict[str, Any]) -> Router:
    (found,) = read(devices=[router(*peers)]).routers
    return found


def test_the_daemon_announces_each_range_with_the_attributes_that_it_has() -> None:
    attributes = {
        "as_path": {"as_set_mode": "include_as_seq", "segments": [{"type": "as_seq", "as_numbers": [65100, 65101]}]},
        "communities": [{"type": "manual_as_number", "as_number": 1, "as_custom": 2}, {"type": "no_export"}],
        "advanced": {"multi_exit_discriminator": 7, "origin": "egp", "local_preference": 300},
    }
    text = told(peer(v4_routes=[routes("r", "100.64.0.1", **attributes)]))
    assert "router id 192.0.2.3;" in text
    assert "local 10.0.2.3 port 179 as 65001;\nneighbor 10.0.2.254 port 179 external;\nrs client;" in text
    # RFC 4271 5.1.2: each adds its number in front.
    assert "bgp_path.prepend(65101); bgp_path.prepend(65100); bgp_path.prepend(65001);" in text
    assert "bgp_community.add((1,2)); bgp_community.add((65535,65281)); bgp_origin = ORIGIN_EGP;" in text
    assert "bgp_next_hop = 10.0.2.3; bgp_med = 7; accept;" in text
    networks = [line.split()[1] for line in text.splitlines() if line.startswith("route ")]
    assert networks == ["100.64.0.0/28", "100.64.0.32/28", "100.64.0.64/28", "100.64.0.96/28"]


def test_an_internal_session_has_no_number_in_the_path_and_a_preference() -> None:
    ranges = [routes("r", "100.64.0.0", next_hop_mode="manual", next_hop_ipv4_address="10.0.2.77")]
    text = told(peer(as_type="ibgp", v4_routes=ranges, advanced={"hold_time_interval": 9, "time_to_live": 3}))
    assert "internal;\nmultihop 3;" in text
    assert "hold time 9;" in text
    assert "{ bgp_origin = ORIGIN_IGP; bgp_next_hop = 10.0.2.77; bgp_local_pref = 100; accept; }" in text


def test_routes_of_both_versions_go_over_one_session_where_the_interface_has_both() -> None:
    text = told(peer(v6_routes=[{"name": "r", "addresses": [{"address": "2001:db8:1::"}]}]))
    assert "bgp_next_hop = 2001:db8:2::3;" in text
    assert "next hop address 2001:db8:2::3;" in text
    assert "route 2001:db8:1::/64 unreachable;" in text


def test_routes_of_the_other_version_need_no_address_where_they_have_a_next_hop() -> None:
    manual = {"next_hop_mode": "manual", "next_hop_address_type": "ipv6", "next_hop_ipv6_address": "2001:db8:9::9"}
    only_v4 = router(peer(v6_routes=[{"name": "r", "addresses": [{"address": "2001:db8:1::"}]} | manual]))
    del only_v4["ethernets"][0]["ipv6_addresses"]
    (found,) = read(devices=[only_v4]).routers
    assert "next hop address 2001:db8:9::9;" in "\n".join(bird.configuration_of(found))


def test_a_set_is_announced_as_a_sequence_of_which_the_client_is_warned() -> None:
    path = {"as_set_mode": "include_as_set", "segments": [{"type": "as_seq", "as_numbers": [65100]}]}
    found = read(devices=[router(peer(v4_routes=[routes("r", "100.64.0.1", as_path=path)]))])
    assert found.routers[0].peers[0].ranges[0].as_path == (65001, 65100)
    assert any("as_path.as_set_mode: the local AS is sent in a sequence" in warning for warning in found.warnings)


def test_only_what_is_to_be_learned_is_kept() -> None:
    wanted = {"unicast_ipv4_prefix": True}
    assert "import limit 200000 action block; import all;" in told(peer(learned_information_filter=wanted))
    assert "import all" not in told(peer())
    assert "import none;" in told(peer())


@pytest.mark.parametrize(
    ("peers", "where", "code"),
    [
        ([peer(v4_routes=[routes("r", "100.64.0.0", add_path={"path_id": 1})])], "v4_routes[0].add_path", 501),
        ([peer(graceful_restart={"enable_gr": True})], "peers[0].graceful_restart", 501),
        ([peer(capability={"vpls": True})], "capability.vpls", 501),
        ([peer(v4_routes=[routes("r", "255.255.255.240")])], "v4_routes[0].addresses[0]", 400),
        ([peer(v4_routes=[routes("r", "127.0.0.0")])], "v4_routes[0].addresses[0].address", 501),
        ([peer(advanced={"hold_time_interval": 1})], "advanced.hold_time_interval", 400),
        ([peer(advanced={"md5_key": 'x"; include "/etc/passwd'})], "advanced.md5_key", 400),
        ([peer(), peer("other")], "devices[0].bgp", 400),
        ([peer(), peer(peer_address="10.0.2.253")], "peers[1].name", 400),
    ],
)
def test_what_is_not_announced_is_refused_with_its_place(peers: list[dict[str, Any]], where: str, code: int) -> None:
    error = refused(devices=[router(*peers)])
    assert (error.code, len(error.errors)) == (code, 1)
    assert where in error.errors[0]


def test_a_peer_is_at_an_address_of_its_own_device() -> None:
    interfaces = [{"ipv4_name": "i1", "peers": [peer()]}]
    error = refused(devices=[device(1, 1), router(ipv4_interfaces=interfaces)])
    assert (error.code, error.errors[0].partition(":")[0]) == (
        INVALID,
        "config.devices[1].bgp.ipv4_interfaces[0]" + ".ipv4_name",
    )


def test_other_protocols_of_devices_are_refused() -> None:
    error = refused(devices=[device(1, 1) | {"isis": {"name": "x", "system_id": "640000000001"}}])
    assert error.code == NOT_IMPLEMENTED
    assert "config.devices[0].isis" in error.errors[0]


def flow_to(ranges: list[dict[str, Any]], senders: list[str], receivers: list[str]) -> Configuration:
    devices = [device(1, 1), router(peer(v4_routes=ranges))]
    return read(flow(senders, receivers, "ethernet", "ipv4", "udp"), devices=devices, macs=GATEWAYS)


def test_a_flow_to_a_range_counts_through_its_routes_and_goes_to_the_gateway() -> None:
    configuration = flow_to([routes("r", "100.64.0.1")], ["i1"], ["r"])
    own, gateway = "02:00:00:00:00:01", "02:00:00:00:00:fe"
    ends = [f"100.64.0.{number}" for number in (1, 33, 65, 97, 1)]
    assert addresses_of(configuration, 5) == [(gateway, own, "10.0.1.1", end) for end in ends]
    assert configuration.needs == {0: frozenset({("e1", ip_address("10.0.1.254"))})}
    assert configuration.flows[0].receive == ("p2",)


def test_a_flow_from_a_range_has_its_addresses_and_the_routers_mac() -> None:
    configuration = flow_to([routes("r", "100.64.0.0")], ["r"], ["i1"])
    found = addresses_of(configuration, 2)
    assert found[1] == ("02:00:00:00:00:fe", "02:00:00:00:00:03", "100.64.0.32", "10.0.1.1")


def test_a_flow_to_a_hundred_thousand_routes_keeps_no_list_of_them() -> None:
    big = {"name": "r", "addresses": [{"address": "100.64.0.0", "prefix": 28, "count": 100_000}]}
    configuration = flow_to([big], ["i1"], ["r"])
    last = frame_of(configuration.flows[0].program, 99_999)
    assert str(ip_address(last[30:34])) == str(ip_address("100.64.0.0") + 16 * 99_999)


def test_a_flow_to_several_ranges_has_every_pair_in_turn() -> None:
    two = {"name": "s", "addresses": [{"address": "100.65.0.0", "prefix": 24}, {"address": "100.66.0.0", "prefix": 24}]}
    configuration = flow_to([routes("r", "100.64.0.0"), two], ["i1"], ["r", "s"])
    ends = [f"100.64.0.{number}" for number in (0, 32, 64, 96)] + ["100.65.0.0", "100.66.0.0"]
    assert [each[3] for each in addresses_of(configuration, 6)] == ends


def test_sessions_are_read_as_the_daemon_shows_them() -> None:
    sessions = bird.parse_protocols(SHOWN)
    assert sessions == {
        "p0": bird.Session("established", advertised=9, withdrawn=2, received=9, received_withdraws=1),
        "p1": bird.Session("active", advertised=0, withdrawn=0, received=0, received_withdraws=0),
    }


def test_the_log_tells_messages_and_flaps_of_a_session() -> None:
    log = bird.Log()
    for line in LOG.splitlines():
        log.note(line)
    metric = bird.metric_of("peer", bird.parse_protocols(SHOWN)["p0"], log.sessions["p0"])
    assert metric["session_state"] == "up"
    assert metric["session_flap_count"] == 1
    assert (metric["opens_sent"], metric["opens_received"]) == (1, 1)
    assert "updates_sent" not in metric, "the log leaves out most of them"
    assert (metric["notifications_sent"], metric["notifications_received"]) == (1, 1)
    assert metric["end_of_rib_received"] == 1
    assert metric["routes_advertised"] == 9
    assert log.last_words == "bird: a.conf:3:1 syntax error"


def test_a_daemon_that_does_not_run_has_no_counts_of_routes() -> None:
    metric = bird.metric_of("peer", None, bird.Messages())
    assert (metric["session_state"], metric["fsm_state"]) == ("down", "idle")
    assert "routes_received" not in metric


def test_prefixes_have_the_attributes_that_the_daemon_shows() -> None:
    first, second = bird.parse_routes(ROUTES.splitlines())
    assert first == {
        "ipv4_address": "203.0.113.0",
        "prefix_length": 24,
        "origin": "igp",
        "as_path": {
            "segments": [{"type": "as_seq", "as_numbers": [65002, 65003]}, {"type": "as_set", "as_numbers": [1, 2]}]
        },
        "ipv4_next_hop": "10.98.0.2",
        "multi_exit_discriminator": 7,
        "local_preference": 100,
        "communities": [
            {"type": "manual_as_number", "as_number": 1, "as_custom": 2},
            {"type": "no_export"},
        ],
    }
    assert second == {"ipv4_address": "198.51.100.0", "prefix_length": 24, "origin": "incomplete"}
