"""The bench file: one YAML file that names the machines, the links and the tests. Reading it touches no host."""

from nicbench.bench_file.load import load, parse
from nicbench.bench_file.models import BenchFile, Choice, TestSpec
from nicbench.bench_file.reader import WrongBenchFileError
from nicbench.testbed.interfaces.base import Port

__all__ = ["BenchFile", "Choice", "Port", "TestSpec", "WrongBenchFileError", "load", "parse"]
