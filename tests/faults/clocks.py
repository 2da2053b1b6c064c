"""Clocks that jump, in the programs that a run starts and in no other: this machine's own clock is never set.

A library that is loaded before the others answers ``clock_gettime`` and ``gettimeofday`` with what the kernel says and
an offset, which it reads from a file that the case writes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from tests.commands import run_captured

from .places import Inject, Scene

_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile long long *offset_ns; /* [0] of the real-time clocks, [1] of the monotonic ones */

__attribute__((constructor)) static void map_offsets(void) {
    const char *path = getenv("NICBENCH_TEST_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) offset_ns = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    if (failed || !offset_ns) return failed;
    int is_real = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE ||
                       clock == CLOCK_BOOTTIME;
    if (!is_real && !is_monotonic) return 0;
    long long ns = time->tv_sec * 1000000000LL + time->tv_nsec + offset_ns[is_monotonic];
    time->tv_sec = ns / 1000000000LL;
    time->tv_nsec = ns % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
"""
Clock = Literal["real", "monotonic"]


@cache
def _library() -> Path:
    folder = Path(mkdtemp(prefix="nicbench-clock-"))
    (folder / "clock.c").write_text(_LIBRARY)
    command = ("clang", "-O2", "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c")
    run_captured(command)
    return folder / "clock.so"


def settable_clock(scene: Scene) -> None:
    """Before the command is given: whatever it starts has the clock of this case."""
    offsets = scene.folder / "clock"
    offsets.write_bytes(bytes(16))
    scene.environment.update(LD_PRELOAD=str(_library()), NICBENCH_TEST_CLOCK=str(offsets))


def step(clock: Clock, *seconds: float) -> Inject:
    """The clock jumps by one of so many seconds."""

    def inject(scene: Scene) -> None:
        ns = round(scene.draw.choice(seconds) * 1e9).to_bytes(8, "little", signed=True)
        with (scene.folder / "clock").open("r+b") as offsets:
            offsets.seek(0 if clock == "real" else 8)
            offsets.write(ns)

    return inject
