"""How fast our generator is beside dpdk-testpmd: both send over one veth by net_af_xdp, in turn, in the same run.

The ratio is what counts: pairs are interleaved and their order alternates, so that a machine that speeds up or slows
down does so for both. Frames are counted by the kernel at the far end, the same counter for both. README.md says more.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass

import numpy as np

from nicbench.errors import NotReadyError
from senders import DISTURBED_SHARE, Nicbench, Sample, Testpmd, measure
from veth_pair import veth_pair

RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Pair:
    """One measurement of each, next to each other in time."""

    ours: Sample
    testpmd: Sample

    @property
    def ratio(self) -> float:
        """Ours over testpmd's."""
        return self.ours.frames_per_s / self.testpmd.frames_per_s


def main() -> int:
    """Measures, prints, and ends with status 1 where ``--at-least`` is given and missed."""
    options = parse_arguments()
    if os.geteuid() != 0:
        print("generate_veth: namespaces and AF_XDP need root\n  next: call it with sudo", file=sys.stderr)
        return 3
    cpus = sorted(os.sched_getaffinity(0))
    ours, testpmd = Nicbench(worker_cpu=cpus[-1]), Testpmd(worker_cpu=cpus[-1], main_cpu=cpus[0])
    print(
        f"{options.frame_bytes}-byte frames, both senders on CPU {cpus[-1]}, "
        f"{options.seconds:g} s each, seed {options.seed}"
    )
    pairs: list[Pair] = []
    with veth_pair() as wire:
        for number in range(options.pairs):
            # Every second pair runs the other way round.
            order = (ours, testpmd) if number % 2 == 0 else (testpmd, ours)
            samples = {
                sender.name: measure(sender, wire, options.frame_bytes, options.seconds, options.settle)
                for sender in order
            }
            pairs.append(Pair(samples[ours.name], samples[testpmd.name]))
            print_pair(number + 1, pairs[-1])
    median, lower, upper = median_with_interval([pair.ratio for pair in pairs], options.seed)
    print_spread(ours.name, [pair.ours for pair in pairs])
    print_spread(testpmd.name, [pair.testpmd for pair in pairs])
    if ours.core_clocks_hz:
        print(f"{'core clock':<20} {min(ours.core_clocks_hz) / 1e9:.2f} to {max(ours.core_clocks_hz) / 1e9:.2f} GHz")
    print(f"{'ratio':<20} median {median:.3f}, 95 % interval {lower:.3f} to {upper:.3f}, {len(pairs)} pairs")
    return 1 if options.at_least is not None and median < options.at_least else 0


def parse_arguments() -> argparse.Namespace:
    """The options with their defaults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="how many pairs (15)")
    parser.add_argument("--seconds", type=float, default=1.0, help="measured time of each [s] (1)")
    parser.add_argument("--settle", type=float, default=0.3, help="time of sending before that [s] (0.3)")
    parser.add_argument("--frame-bytes", type=int, default=64, help="frame size with FCS (64)")
    parser.add_argument("--seed", type=int, default=1, help="of the bootstrap (1)")
    parser.add_argument("--at-least", type=float, default=None, help="status 1 where the median ratio is below this")
    return parser.parse_args()


def median_with_interval(ratios: list[float], seed: int) -> tuple[float, float, float]:
    """Median and its 95 % interval by the percentile bootstrap."""
    draws = np.random.default_rng(seed).choice(ratios, size=(RESAMPLES, len(ratios)))
    lower, upper = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(lower), float(upper)


def print_pair(number: int, pair: Pair) -> None:
    """One line per pair, as soon as it is measured; a star marks a sample that somebody else's program disturbed."""
    columns = []
    for name, sample in (("ours", pair.ours), ("testpmd", pair.testpmd)):
        mark = "*" if sample.waited_share > DISTURBED_SHARE else " "
        columns.append(f"{name} {sample.frames_per_s / 1e6:.3f} Mpps{mark}")
    print(f"{number:>3}  {'  '.join(columns)}  ratio {pair.ratio:.3f}", flush=True)


def print_spread(name: str, samples: list[Sample]) -> None:
    """Median and extremes of one sender, and how many of its samples stayed disturbed."""
    rates = np.array([sample.frames_per_s for sample in samples]) / 1e6
    disturbed = sum(sample.waited_share > DISTURBED_SHARE for sample in samples)
    spread = f"median {np.median(rates):.3f} Mpps, from {rates.min():.3f} to {rates.max():.3f}"
    print(f"{name:<20} {spread}" + (f"; {disturbed} disturbed (*)" if disturbed else ""))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (RuntimeError, NotReadyError) as error:
        print(f"generate_veth: {error}", file=sys.stderr)
        sys.exit(4)
