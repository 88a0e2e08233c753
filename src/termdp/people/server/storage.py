"""The store as requests use it: reads run in threads, writes in the writer's thread."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import anyio.to_thread
from sqlalchemy.orm import Session
from starlette.requests import Request

from termdp.people.records.study_store import UnreachableError

# How long a transaction waits for another program's. A write may also have to wait for
# the one before it, so every answer comes within little more than twice this time.
BUSY_SECONDS = 2.0
ANSWER_SECONDS = 2 * BUSY_SECONDS
Found = TypeVar("Found")


async def read(function: Callable[..., Found], *args: Any, **more: Any) -> Found:
    """Read from the store without holding up other requests."""
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            return await anyio.to_thread.run_sync(
                partial(function, *args, **more), abandon_on_cancel=True
            )
    except TimeoutError as error:
        raise UnreachableError(
            f"the database does not answer within {ANSWER_SECONDS:.0f} s"
        ) from error


async def write(request: Request, job: Callable[[Session], Found]) -> Found:
    """Run a job in the writer; its change is on disk when this returns."""
    return await asyncio.wrap_future(request.app.state.writer.submit(job))
