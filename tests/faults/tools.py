"""Tools that are wrong: a program named as the real one, which lies, talks nonsense, or fails in another way."""

from __future__ import annotations

import os
import shutil

from .places import Inject, Scene

_TOOL = """#!{python}
import json, os, pathlib, re, subprocess, sys, time
real, count = {real!r}, pathlib.Path({count!r})
arguments = sys.argv[1:]
if {only!r} not in ("", *arguments) or not {{"-c", "-s"}} & set(arguments):
    os.execv(real, [real, *arguments])
number = len(count.read_text()) if count.exists() else 0
count.write_text("x" * (number + 1))
if {times} and number >= {times}:
    os.execv(real, [real, *arguments])
def run():
    return subprocess.run([real, *arguments], stdout=subprocess.PIPE, text=True)
def grow(value, factor, name=""):
    if isinstance(value, dict):
        return {{key: grow(each, factor, key) for key, each in value.items()}}
    if isinstance(value, list):
        return [grow(each, factor, name) for each in value]
    if name in ("bytes", "bits_per_second") and isinstance(value, (int, float)):
        return type(value)(value * factor)
    return value
{body}
"""
_BODIES = {
    "multiplies": "done = run()\nprint(json.dumps(grow(json.loads(done.stdout), {factor})))\nsys.exit(done.returncode)",
    "garbage": 'run()\nsys.stdout.buffer.write(bytes(range(256)) * 40)\nprint("{{{{[[")',
    "nan": 'done = run()\nprint(re.sub(r\'("(?:bits_per_second|bytes)":\\s*)[0-9.e+]+\', r"\\1NaN", done.stdout))',
    "zero": 'done = run()\nprint(re.sub(r\'("(?:bits_per_second|bytes)":\\s*)[0-9.e+]+\', r"\\g<1>0", done.stdout))',
    "minus": 'done = run()\nprint(re.sub(r\'("(?:bits_per_second|bytes)":\\s*)\', r"\\1-", done.stdout))',
    "nothing": "run()",
    "half": "done = run()\nprint(done.stdout[: len(done.stdout) // 2])",
    "fails": 'print("iperf3: error - something is wrong", file=sys.stderr)\nsys.exit(1)',
    "endless": 'text = "x" * 65536\nend = time.monotonic() + 60\nwhile time.monotonic() < end:\n    print(text)',
}


def wrong_tool(how: str, *, factor: float = 1.0, only: str = "", times: int = 0) -> Inject:
    """Puts such an iperf3 first in PATH, ``only`` at one end (``-c``, ``-s``), for some ``times`` (0: always)."""

    def inject(scene: Scene) -> None:
        folder = scene.folder / "bin"
        folder.mkdir(exist_ok=True)
        tool = folder / "iperf3"
        body = _BODIES[how].replace("{factor}", repr(factor))
        real = shutil.which("iperf3", path="/usr/bin:/usr/local/bin:/bin")
        assert real is not None, "iperf3 is not installed"
        text = _TOOL.format(
            python=_python(), real=real, count=str(scene.folder / "count"), only=only, times=times, body=body
        )
        tool.write_text(text)
        tool.chmod(0o755)
        scene.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
        scene.mending.append(lambda: tool.unlink(missing_ok=True))

    return inject


def lies(factor: float, times: int = 0) -> Inject:
    """Both ends say so many times of what they moved."""
    return wrong_tool("multiplies", factor=factor, times=times)


def _python() -> str:
    """One that starts fast, without the packages of the tests."""
    return "/usr/bin/python3 -IS" if os.path.exists("/usr/bin/python3") else (shutil.which("python3") or "python3")
