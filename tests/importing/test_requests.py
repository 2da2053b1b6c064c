"""Tools of requests and answers: recorded outputs of each, and what is no figure of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nicbench.core.errors import UsageError, WrongFileError
from nicbench.core.registry import find
from nicbench.core.result import Result
from nicbench.first_steps.tables import how_to_import
from nicbench.importing.cells import Dialect
from nicbench.importing.columns import ImportOptions
from nicbench.importing.folder import GivenFile, import_files
from nicbench.importing.formats.base import Format
from nicbench.importing.results import method_of

METHOD = "request-response"
NAMES = ("transactions_per_s", *(f"latency_{part}_ns" for part in ("minimum", "mean", "p50", "p99", "maximum")))
WRK2 = """\
Running 20s test @ http://gateway:8000/bench/1k
  4 threads and 64 connections
  Thread calibration: mean lat.: 1.234ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.12ms  510.33us   9.87ms   78.00%
    Req/Sec     2.64k   210.00     3.44k    80.00%
  Latency Distribution (HdrHistogram - Recorded Latency)
 50.000%    1.05ms
 99.000%    3.10ms
 99.990%    8.90ms
100.000%    9.88ms

  Detailed Percentile spectrum:
       Value   Percentile   TotalCount 1/(1-Percentile)

       1.050     0.500000        99900         2.00
#[Mean    =        1.120, StdDeviation   =        0.510]
----------------------------------------------------------

  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))
 50.000%  700.00us
  200020 requests in 20.00s, 215.99MB read
Requests/sec:  10001.02
Transfer/sec:     10.80MB
"""
H2LOAD = """\
finished in 2.00s, 308330.00 req/s, 36.18MB/s
requests: 616660 total, 616664 started, 616660 done, 616660 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 616660 2xx, 0 3xx, 0 4xx, 0 5xx
                 min         max         median      p95         p99         mean        sd         +/- sd
request     :        7us       461us        10us        15us        20us        11us         3us    93.62%
connect     :       78us        97us        88us        97us        97us        88us         7us    50.00%
"""
NETPERF = """\
MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 1 AF_INET : first burst 0
Minimum Latency Microseconds,Mean Latency Microseconds,Maximum Latency Microseconds,\
50th Percentile Latency Microseconds,99th Percentile Latency Microseconds,Transaction Rate Tran/s,Throughput,\
Throughput Units
4,14.490,6655,13,33,68492.367,{},{}
"""
K6_TREND = {"avg": 17.5, "min": 10.9, "med": 17.3, "max": 65.3, "p(90)": 18.9, "p(95)": 19.5, "p(99)": 30.125}


def k6(*, failed: float = 0.0, nested: bool = False) -> str:
    metrics = {
        "http_req_duration": K6_TREND,
        "http_reqs": {"count": 45765, "rate": 4568.791991},
        "http_req_failed": {"passes": 0, "fails": 45765, "rate" if nested else "value": failed},
    }
    return json.dumps({"metrics": {name: {"values": one} if nested else one for name, one in metrics.items()}})


def imported_of(text: str, form: str, method: str = METHOD, **said: Any) -> tuple[Result, ...]:
    known = find("nicbench.importing.formats", Format)[form]
    file = GivenFile(Path("x.txt"), text.encode())
    return import_files((file,), known, (method_of(method),), ImportOptions(**said), Dialect()).results


@pytest.mark.parametrize(
    ("file", "form", "figures"),
    [
        ("wrk_4.1.0.txt", "wrk", (32525.79, None, 870_000, 56_000, 12_940_000, 34_480_000)),
        ("h2load_1.52.0.txt", "h2load", (25207.71, 21_000, 157_000, None, None, 12_540_000)),
        ("sockperf_3.7.txt", "sockperf", (12644 / 1.55, 6669, 61_293, 6850, 438_780, 51_603_236)),
        ("fio_3.33.json", "fio", (10083.333333, 43_324, 91_754.471074, 48_896, 1_384_448, 3_845_139)),
    ],
)
def test_what_was_recorded_is_read_and_proposed(
    file: str, form: str, figures: tuple[float | None, ...], golden: Path
) -> None:
    first = imported_of((golden / file).read_text(), form)[0]
    assert [first.values.get(name) for name in NAMES] == [pytest.approx(one) if one else one for one in figures]
    assert how_to_import(golden / file).options == ("--method", METHOD, "--from", form)


@pytest.mark.parametrize(
    ("text", "form", "figures"),
    [
        (WRK2, "wrk", (10001.02, None, 1_120_000, 1_050_000, 3_100_000, 9_880_000)),
        (H2LOAD, "h2load", (308_330.0, 7000, 11_000, 10_000, 20_000, 461_000)),
        (k6(), "k6", (4568.791991, 10_900_000, 17_500_000, 17_300_000, 30_125_000, 65_300_000)),
        (k6(nested=True), "k6", (4568.791991, 10_900_000, 17_500_000, 17_300_000, 30_125_000, 65_300_000)),
        (NETPERF.format(68492.37, "Trans/s"), "netperf", (68492.37, 4000, 14_490, 13_000, 33_000, 6_655_000)),
    ],
)
def test_what_public_programs_read_is_read(text: str, form: str, figures: tuple[float | None, ...]) -> None:
    (only,) = imported_of(text, form)
    assert [only.values.get(name) for name in NAMES] == [pytest.approx(one) if one else one for one in figures]


def test_fio_has_a_row_for_each_direction(golden: Path) -> None:
    found = imported_of((golden / "fio_3.33.json").read_text(), "fio")
    assert [one.parameters["mode"] for one in found] == ["t, read", "t, write"]


def test_netperf_s_streams_are_streams() -> None:
    (only,) = imported_of(NETPERF.format(941.5, "10^6bits/s"), "netperf", "stream")
    assert only.values["throughput_bits_per_s"] == 941.5e6
    (blank,) = imported_of(NETPERF.format(68492.37, "Trans/s").replace("6655", "-1"), "netperf")
    assert blank.values.get("latency_maximum_ns") is None


@pytest.mark.parametrize(
    ("text", "form", "says"),
    [
        (
            WRK2.replace("Requests/sec", "  Non-2xx or 3xx responses: 12\nRequests/sec"),
            "wrk",
            "responses: 12: requests",
        ),
        (
            WRK2.replace("Requests/sec", "  Socket errors: connect 0, read 3, write 0, timeout 1\nRequests/sec"),
            "wrk",
            "timeout 1: requests failed",
        ),
        (WRK2.replace("10001.02", "20001.02"), "wrk", "make another rate"),
        (WRK2.replace("1.05ms", "-nanus"), "wrk", "'-nanus' is no time"),
        (WRK2.replace("Latency     1.12ms", "Latency     -nanus"), "wrk", "'-nanus' is no time"),
        (H2LOAD.replace("616660 succeeded", "616650 succeeded"), "h2load", "616650 succeeded: requests failed"),
        (H2LOAD[:90], "h2load", "has no rate, counts or times"),
        (k6(failed=0.02), "k6", "2 % of the requests: requests failed"),
        ("{}", "k6", "has no metrics"),
        ('{"jobs": [{"jobname": "a", "error": 5}]}', "fio", "failed with error 5"),
        ('{"jobs": [{"read": {"total_ios": 1, "clat": {}}}]}', "fio", "has no clat_ns"),
        ("sockperf: nothing", "sockperf", "has no latency"),
        ("a,b\n1,2\n", "netperf", "no line names its columns"),
        (NETPERF.format(941.5, "10^6bits/s"), "netperf", "nothing of `request-response`"),
    ],
)
def test_what_is_wrong_is_told(text: str, form: str, says: str) -> None:
    with pytest.raises(WrongFileError) as refused:
        imported_of(text, form)
    assert says in str(refused.value)


@pytest.mark.parametrize("form", ["fio", "k6", "wrk", "h2load", "sockperf"])
def test_requests_are_of_one_method(form: str, golden: Path) -> None:
    texts = {"k6": k6(), "wrk": WRK2, "h2load": H2LOAD}
    files = {"fio": "fio_3.33.json", "sockperf": "sockperf_3.7.txt"}
    text = texts.get(form) or (golden / files[form]).read_text()
    with pytest.raises(UsageError, match="measures requests"):
        imported_of(text, form, "throughput")


def test_a_table_of_requests_is_a_table(imported: Any) -> None:
    (only,) = imported("tool,requests/s,p50 [us],p99 [us]\nmine,1000,5.5,9.25\n", METHOD).results
    assert (only.values["transactions_per_s"], only.values["latency_p99_ns"]) == (1000.0, 9250.0)
