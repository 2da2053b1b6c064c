"""Stands in for iperf3 on a host's PATH: it behaves as the congestion control that it is asked for is called.

As a server it listens, and ends when its client has come and gone.
"""

import os
import socket
import sys
import time

arguments = sys.argv[1:]


def after(option: str, default: str = "") -> str:
    return arguments[arguments.index(option) + 1] if option in arguments else default


def serve() -> None:
    if os.environ.get("FAKE_SERVER") == "dies":
        sys.exit("unable to start listener: Address already in use")
    if os.environ.get("FAKE_SERVER") == "deaf":
        time.sleep(600)
    with socket.create_server((after("-B"), int(after("-p")))) as server:
        server.accept()[0].recv(1)


def client(behaviour: str) -> None:
    connection = socket.create_connection((after("-c"), int(after("-p"))))
    honest = os.environ["FAKE_HONEST"]
    if behaviour == "hang":
        time.sleep(600)
    elif behaviour == "last":
        time.sleep(2.0)
    elif behaviour == "die":
        sys.stderr.write("first words\nSegmentation fault\x1b[31m (not really)\n")
        sys.exit(139)
    elif behaviour == "flood":
        while True:
            os.write(1, b"x" * 65536)
    elif behaviour == "scream":
        while True:
            os.write(2, b"no! " * 16384)
    elif behaviour == "lie":
        honest = honest.replace("6191425777.2857275", "6.19e20")
    elif behaviour == "nan":
        honest = honest.replace("6191425777.2857275", "NaN")
    elif behaviour == "escape":
        honest = honest.replace('"bbr"', '"\\u001b[2Jbbr"')
    elif behaviour == "child":
        if os.fork() == 0:
            time.sleep(600)
        sys.exit(3)
    connection.close()
    print(honest)


if "--version" in arguments:
    print("iperf 3.12")
elif "-s" in arguments:
    serve()
else:
    client(after("-C"))
