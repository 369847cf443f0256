"""A port of loopback for a server that has to be told one."""

import random
import socket

_luck = random.SystemRandom()  # so that test processes beside each other seldom want the same


def free_port() -> int:
    """A port that is free, below those that the system gives to outgoing calls."""
    for _ in range(1000):
        port = _luck.randrange(20_000, 32_768)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
