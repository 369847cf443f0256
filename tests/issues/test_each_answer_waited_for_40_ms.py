"""Each answer of a spool's door took 44 ms, on the machine itself and without load.

Its socket did not say that it was TCP's, so asyncio left Nagle's algorithm on: the second piece of
each answer waited until the client's system had acknowledged the first, which it puts off.
"""

import asyncio
import socket

from tidegate.spooler.serve import bound


def test_what_is_accepted_sends_its_answers_at_once() -> None:
    async def ask() -> int:
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served = writer.get_extra_info("socket")
            asked.set_result(served.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(accepted, sock=bound("127.0.0.1", 0)) as server:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            answer = await asked
            writer.close()
            await writer.wait_closed()
        return answer

    assert asyncio.run(ask()) != 0
