"""What the receiver knows beyond counts, as the frozen types; engines that tell less, or more, are understood."""

from nicbench.engine.reading import parse_received, parse_recorded


def test_what_an_older_engine_leaves_out_is_unknown() -> None:
    fields = parse_received({"name": "0->1"})
    assert fields == {
        "checked_bytes": None,
        "reordering": None,
        "variation": None,
        "intervals": None,
        "arrivals": None,
        "last_jump_ns": None,
        "groups": (),
        "flows": None,
        "traffic_classes": None,
    }
    assert parse_recorded({}) == {"capture": None, "flow_report": None}


def test_what_a_newer_engine_tells_beyond_is_ignored() -> None:
    raw = {"pairs": 3, "mean_ns": 1.5, "maximum_ns": 9, "colour": "green"}
    variation = parse_received({"variation": raw})["variation"]
    assert (variation.pairs, variation.maximum_ns) == (3, 9)


def test_files_are_named_by_their_place_in_the_run_folder() -> None:
    raw = {"path": "/somewhere/run/raw/t0007.pcapng", "frames": 12, "jumps": 1, "truncated": False, "error": None}
    assert parse_recorded({"capture": raw})["capture"].name == "raw/t0007.pcapng"


def test_flows_keep_their_worst() -> None:
    raw = {
        "flows": 256,
        "silent": 0,
        "with_loss": 2,
        "with_reordering": 1,
        "with_duplicates": 0,
        "with_corruption": 0,
        "most_lost": [17, 40],
        "slowest": [3, 1234.5],
    }
    flows = parse_received({"flows": raw})["flows"]
    assert (flows.most_lost, flows.slowest) == ((17, 40), (3, 1234.5))
