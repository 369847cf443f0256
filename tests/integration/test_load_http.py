"""What the load generator's clients really put on the wire, read by a bare socket."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tidegate.loadgen.client import Http
from tidegate.units import MILLISECOND

pytestmark = pytest.mark.slow  # sockets are opened

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request with what it was told to, and keeps what it has read."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.heads: list[dict[str, str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode().lower().split("\r\n")[1:]
                self.heads.append(dict(line.split(": ", 1) for line in lines if line))
                answer = self.answers.pop(0)
                writer.write(answer)
                await writer.drain()
                if answer != WELL and b"Content-Length: 0" not in answer:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def talked(server: Server, story: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        async with listening:
            port = listening.sockets[0].getsockname()[1]
            await story(f"http://127.0.0.1:{port}/")

    asyncio.run(main())


async def outcomes(http: Http, *numbers: int) -> list[str]:
    async with http:
        return [(await http(number)).name for number in numbers]


def status(code: int) -> bytes:
    return f"HTTP/1.1 {code} Said\r\nContent-Length: 0\r\n\r\n".encode()


def test_how_an_attempt_ended_is_read_from_its_answer() -> None:
    async def story(url: str) -> None:
        assert await outcomes(Http(url), *range(1, 8)) == [
            *("SUCCESS", "SUCCESS", "OVERLOADED", "OVERLOADED", "FAILURE", "TIMEOUT", "FAILURE"),
        ]

    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it"
    talked(Server(WELL, *map(status, (404, 429, 503, 500, 504)), cut), story)


def test_connections_are_used_again_unless_every_attempt_is_to_have_its_own() -> None:
    async def story(url: str) -> None:
        await outcomes(Http(url), 1, 2, 3)
        assert server.connections == 1
        await outcomes(Http(url, reconnect=True), 1, 2, 3)
        assert server.connections == 4

    server = Server(*[WELL] * 6)
    talked(server, story)


def test_an_attempt_tells_what_it_is_to_tell() -> None:
    async def story(url: str) -> None:
        await outcomes(Http(url), 1, 3)
        await outcomes(Http(url, marks=True), 1, 3)
        await outcomes(Http(url, patience=500 * MILLISECOND), 2)

    server = Server(*[WELL] * 5)
    talked(server, story)
    told = [
        {name: value for name, value in head.items() if name.startswith("tidegate-")}
        for head in server.heads
    ]
    assert told == [
        {},
        {},
        {},
        {"tidegate-retry-depth": "2"},
        {"tidegate-remaining-ms": "500"},
    ]
