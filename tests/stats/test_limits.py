"""What held a throughput down: every branch, on figures whose limit is known."""

from __future__ import annotations

import pytest

from nicbench.stats.limits import (
    CpuLoad,
    Limit,
    MovedData,
    Offer,
    describe_share,
    find_constant_share,
    limit_alone,
    limit_of,
)

LINK = 100e6
IDLE = CpuLoad(0.1, 0.3)
TIRED = CpuLoad(0.5, 0.97)


def moved(
    client: str, rate: float | None, *, port: str = "s0", machine: str | None = None, link: float = LINK
) -> MovedData:
    return MovedData(client, port, machine or f"machine of {client}", rate, link, LINK)


def test_a_link_is_full_at_nine_tenths_of_payload() -> None:
    assert limit_of([moved("a", 90e6)], "server", {}).limit is Limit.LINK


def test_two_clients_fill_the_link_of_their_port_together() -> None:
    found = limit_of([moved("a", 60e6), moved("b", 34e6)], "server", {"machine of b": TIRED})
    assert (found.limit, found.text) == (Limit.LINK, "the link was full")


def test_several_full_links_are_said_as_several() -> None:
    assert limit_of([moved("a", 94e6), moved("b", 94e6, port="s1")], "server", {}).text == "the links were full"


def test_one_full_link_of_two_explains_nothing_of_the_other() -> None:
    assert limit_of([moved("a", 94e6), moved("b", 40e6, port="s1")], "server", {}).limit is Limit.UNKNOWN


@pytest.mark.parametrize("machine", ["server", "machine of a"])
def test_a_cpu_that_strangers_kept_busy_is_nobodys_limit(machine: str) -> None:
    crowded = {machine: CpuLoad(0.9, 1.0, strangers=0.8)}
    for found in (
        limit_of([moved("a", 40e6)], "server", crowded),
        limit_alone(moved("a", 40e6), [], "server", crowded),
    ):
        assert found.limit is Limit.UNKNOWN
        assert f"a CPU of {machine} was busy all the time, and programs outside the test took 80 %" in found.text
    quiet = {machine: CpuLoad(0.9, 1.0, strangers=0.01)}
    assert limit_of([moved("a", 40e6)], "server", quiet).limit in (Limit.SERVER, Limit.CLIENT)


def test_a_stranger_with_a_cpu_of_a_large_machine_makes_the_limit_unknown() -> None:
    crowded = {"server": CpuLoad(0.03, 1.0, strangers=1 / 64, cpus=64)}
    found = limit_of([moved("a", 50e6)], "server", crowded)
    assert found.limit is Limit.UNKNOWN
    assert "programs outside the test took 1.0 of its 64 CPUs" in found.text
    quiet = {"server": CpuLoad(0.03, 1.0, strangers=0.1 / 64, cpus=64)}
    assert limit_of([moved("a", 50e6)], "server", quiet).limit is Limit.SERVER


def test_more_than_a_link_carries_is_explained_by_whoever_shares_it() -> None:
    assert "still in buffers" in limit_of([moved("a", 109e6)], "server", {}).text
    assert "did not start and end together" in limit_of([moved("a", 60e6), moved("b", 49e6)], "server", {}).text


def test_a_full_link_of_a_slow_client_is_a_link() -> None:
    assert limit_of([moved("a", 9.4e6, link=10e6)], "server", {}).limit is Limit.LINK


def test_a_client_with_a_busy_cpu_is_the_limit_where_the_server_has_time_left() -> None:
    found = limit_of([moved("a", 60e6), moved("b", 10e6, port="s1")], "server", {"machine of a": TIRED, "server": IDLE})
    assert (found.limit, found.clients) == (Limit.CLIENT, ("a",))
    assert "a (97 %)" in found.text
    assert "Repeat it with a faster client" in found.text


def test_where_client_and_server_are_busy_the_server_is_the_limit() -> None:
    found = limit_of([moved("a", 60e6)], "server", {"machine of a": TIRED, "server": TIRED})
    assert (found.limit, found.text) == (Limit.SERVER, "a CPU of the server was 97 % busy")


def test_a_client_much_slower_than_those_beside_it_is_the_limit() -> None:
    rates = [moved("a", 80e6), moved("b", 82e6, port="s1"), moved("c", 40e6, port="s2")]
    found = limit_of(rates, "server", {})
    assert (found.limit, found.clients) == (Limit.CLIENT, ("c",))


def test_two_clients_alone_do_not_tell_which_of_them_is_slow() -> None:
    assert limit_of([moved("a", 80e6), moved("b", 20e6, port="s1")], "server", {}).limit is Limit.UNKNOWN


def test_a_client_with_a_slower_link_is_not_compared_with_faster_ones() -> None:
    rates = [moved("a", 80e6), moved("b", 82e6, port="s1"), moved("c", 5e6, port="s2", link=10e6)]
    assert limit_of(rates, "server", {}).limit is Limit.UNKNOWN


def test_where_server_and_clients_share_a_machine_its_cpus_are_named() -> None:
    one = moved("a", 60e6, machine="server")
    assert limit_of([one], "server", {"server": CpuLoad(0.95, 1.0)}).limit is Limit.SHARED
    assert limit_of([one], "server", {"server": CpuLoad(0.5, 1.0)}).limit is Limit.UNKNOWN


@pytest.mark.parametrize("busy", [{}, {"server": CpuLoad(None, None)}, {"server": IDLE}])
def test_what_no_figure_shows_is_unknown(busy: dict[str, CpuLoad]) -> None:
    found = limit_of([moved("a", 60e6)], "server", busy)
    assert (found.limit, found.text) == (
        Limit.UNKNOWN,
        "no link and no CPU was full: what held it down is not known",
    )


def test_a_client_that_moved_nothing_known_is_no_full_link() -> None:
    assert limit_of([moved("a", None)], "server", {}).limit is Limit.UNKNOWN
    assert limit_of([], "server", {}).limit is Limit.UNKNOWN


def test_the_published_slow_client_is_recognised_by_the_faster_one_at_the_same_port() -> None:
    """Tables 3 and 4 of the report: 62.34 and 84.54 Mb/s through port 1 at 100 Mb/s, half duplex."""
    slow, fast = moved("slow", 62.34e6), moved("fast", 84.54e6)
    found = limit_alone(slow, [slow, fast], "server", {"server": TIRED})
    assert (found.limit, found.clients) == (Limit.CLIENT, ("slow",))
    assert found.text.startswith("slow moved 74 % of what fast moved through the same port")
    assert limit_alone(fast, [slow, fast], "server", {"server": TIRED}).limit is Limit.SERVER


def test_through_another_port_more_may_be_moved_for_reasons_of_the_ports() -> None:
    slow, other = moved("slow", 62e6), moved("other", 84e6, port="s1")
    assert limit_alone(slow, [slow, other], "server", {}).limit is Limit.UNKNOWN


def test_a_client_nearly_as_fast_as_the_best_is_no_limit() -> None:
    one, best = moved("one", 77e6), moved("best", 84e6)
    assert limit_alone(one, [one, best], "server", {}).limit is Limit.UNKNOWN
    assert limit_alone(moved("a", None), [best], "server", {}).limit is Limit.UNKNOWN


def test_alone_too_a_full_link_comes_before_a_busy_client() -> None:
    busy = {"machine of a": TIRED}
    assert limit_alone(moved("a", 94e6), [], "server", busy).limit is Limit.LINK
    assert limit_alone(moved("a", 60e6), [], "server", busy).limit is Limit.CLIENT


def test_two_clients_that_share_a_full_port_are_not_slow() -> None:
    shared = [moved("a", 47e6), moved("b", 47e6)]
    alone = [moved("c", 94e6, port="s1"), moved("d", 94e6, port="s2"), moved("e", 85e6, port="s3")]
    assert limit_of([*shared, *alone], "server", {}).limit is Limit.UNKNOWN


def test_clients_of_ports_with_another_number_of_them_are_not_compared() -> None:
    shared = [moved("a", 40e6), moved("b", 40e6)]
    alone = [moved("c", 85e6, port="s1"), moved("d", 85e6, port="s2"), moved("e", 85e6, port="s3")]
    assert limit_of([*shared, *alone], "server", {}).limit is Limit.UNKNOWN


def test_of_links_of_unknown_speed_nothing_is_said_of_the_speed() -> None:
    unknown = [
        MovedData(name, port, name, rate) for name, port, rate in (("a", "p", 1e9), ("b", "q", 9e9), ("c", "r", 9e9))
    ]
    assert "links of unknown speed" in limit_of(unknown, "server", {}).text


def test_a_server_without_a_figure_is_not_said_to_have_time_left() -> None:
    found = limit_of([moved("a", 60e6)], "server", {"machine of a": TIRED})
    assert "how busy the server was is not known" in found.text


def test_each_direction_of_a_link_is_added_up_by_itself() -> None:
    rates = [(50e6, 5e6), (5e6, 50e6)]
    both = [
        MovedData(name, "s0", name, max(rate), LINK, LINK, by_direction=rate)
        for name, rate in zip("ab", rates, strict=True)
    ]
    assert limit_of(both, "server", {}).limit is Limit.UNKNOWN
    full = [MovedData("a", "s0", "a", 60e6, LINK, LINK, by_direction=(60e6, 1e6)) for _ in range(2)]
    assert limit_of(full, "server", {}).limit is Limit.LINK


# A constant share and a ceiling are distinguished by two loads.


def offers(*pairs: tuple[float, float]) -> list[Offer]:
    return [Offer(asked, sent, asked) for asked, sent in pairs]


@pytest.mark.parametrize("share", [0.05, 0.5, 0.6, 0.9, 0.997, 0.9985])
def test_the_same_share_at_two_loads_is_one(share: float) -> None:
    assert find_constant_share(offers((1e6, share * 1e6), (5e5, share * 5e5))) == pytest.approx(share)


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param([], id="no trial"),
        pytest.param([(1e6, 6e5)], id="one load does not tell"),
        pytest.param([(1e6, 6e5), (1e6, 6e5)], id="the same load twice does not tell"),
        pytest.param([(1e6, 6e5), (8e5, 6e5)], id="a ceiling"),
        pytest.param([(1e6, 9.7e5), (9.9e5, 9.7e5)], id="a ceiling close to the load"),
        pytest.param([(1e6, 8e5), (7.98e5, 7.76e5)], id="a ceiling that wavers"),
        pytest.param([(1e6, 6e5), (5.9e5, 5.9e5)], id="all was sent at a lower load"),
        pytest.param([(1e6, 6e5), (4e5, 4e5), (5e5, 3e5)], id="another trial at a lower load sent all"),
        pytest.param([(1e6, 9.9995e5), (5e5, 4.99975e5)], id="too little to count"),
        pytest.param([(1e6, 0.0), (5e5, 0.0)], id="nothing was sent"),
    ],
)
def test_anything_else_is_none(pairs: list[tuple[float, float]]) -> None:
    assert find_constant_share(offers(*pairs)) is None


def test_a_ceiling_above_does_not_hide_the_share_below_it() -> None:
    assert find_constant_share(offers((1e6, 5e5), (5e5, 4e5), (3e5, 2.4e5))) == pytest.approx(0.8)


def test_few_frames_are_counted_coarsely() -> None:
    assert find_constant_share([Offer(1001.0, 997.0, 1001), Offer(900.0, 897.0, 900)]) is not None


def test_the_sentence_has_the_share_and_what_loads_are() -> None:
    assert describe_share(0.997) == (
        "the tester sent 99.7 % of what it was asked for at every load; loads are those that were sent"
    )


def test_a_share_just_below_all_is_not_rounded_to_all() -> None:
    assert "sent 99.97 %" in describe_share(0.9997)
    assert "sent 99.9997 %" in describe_share(0.999997)
