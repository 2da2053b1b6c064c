"""What ptp4l says of a machine (recorded of linuxptp 3.1.1), and by how much two machines' times may then differ."""

from nicbench.system.ptp import bound_between, describe_ptp, parse_ptp

PORT = """sending: GET CURRENT_DATA_SET
\tb25301.fffe.ca7b57-0 seq 0 RESPONSE MANAGEMENT CURRENT_DATA_SET
\t\tstepsRemoved     1
\t\toffsetFromMaster -481.0
\t\tmeanPathDelay    1920.0
sending: GET TIME_STATUS_NP
\tb25301.fffe.ca7b57-0 seq 1 RESPONSE MANAGEMENT TIME_STATUS_NP
\t\tmaster_offset              -481
\t\tingress_time               1795766338584887730
\t\tgmPresent                  true
\t\tgmIdentity                 1a9ad8.fffe.24273d
\tb25301.fffe.ca7b57-1 seq 2 RESPONSE MANAGEMENT PORT_DATA_SET
\t\tportIdentity            b25301.fffe.ca7b57-1
\t\tportState               SLAVE
\t\tpeerMeanPathDelay       0
\tb25301.fffe.ca7b57-1 seq 4 RESPONSE MANAGEMENT PORT_PROPERTIES_NP
\t\tportIdentity            b25301.fffe.ca7b57-1
\t\tportState               SLAVE
\t\ttimestamping            SOFTWARE
\t\tinterface               pb
"""
MASTER = PORT.replace("SLAVE", "MASTER").replace("-481.0", "0.0").replace("1920.0", "0.0")
CARD = PORT.replace("SOFTWARE", "HARDWARE")
APART = "phc_ctl[1843.250]: offset from CLOCK_REALTIME is -37000000120ns\n"


def said(ptp: str, system: str = "") -> str:
    return f"\n=== nicbench section ptp\n{ptp}\n=== nicbench section system\n{system}"


def test_a_slave_and_its_master_bound_the_difference_of_their_times() -> None:
    slave, master = parse_ptp("far", said(PORT)), parse_ptp("near", said(MASTER))
    assert (slave.state, slave.grandmaster, slave.offset_ns, slave.system_ns) == (
        "SLAVE",
        "1a9ad8.fffe.24273d",
        -481.0,
        0.0,
    )
    assert bound_between((master, slave)) == 481.0 + 1920.0


def test_a_system_clock_is_compared_with_that_of_the_card_without_leap_seconds() -> None:
    state = parse_ptp("far", said(CARD, APART))
    assert state.system_ns == -120.0
    assert state.bound_ns == 481.0 + 1920.0 + 120.0
    assert "the system's clock is off the card's by -120 ns" in describe_ptp(state)


def test_clocks_that_follow_nothing_or_another_master_bound_nothing() -> None:
    master = parse_ptp("near", said(MASTER))
    for text in (
        said(PORT.replace("SLAVE", "UNCALIBRATED")),
        said(PORT.replace("1a9ad8", "1a9ad9")),
        said(CARD),
        said(""),
        "",
    ):
        assert bound_between((master, parse_ptp("far", text))) is None
    assert describe_ptp(parse_ptp("far", said(""))) == "no ptp4l answers"
