"""Who has joined, known without asking the database at every request."""

import asyncio
import math
import time
from collections.abc import Callable

from termdp.people.records.study_store import StudyStore, UnreachableError
from termdp.people.server.storage import read

# Unknown tokens make the server ask the database again, but no more often than this, so
# that made-up tokens do not keep it busy.
LOOK_SECONDS = 1.0


class Insiders:
    """Digests of the tokens of everybody who has joined, and of the admin.

    This decides only how many requests somebody may send; what they may see is decided
    by `api.who` and `admin_api.must_be_admin`.
    """

    def __init__(
        self,
        store: StudyStore,
        admin_hash: str,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.store = store
        self.clock = clock
        self.admin_hash = admin_hash
        self._known = {admin_hash}
        self._looked = -math.inf

    async def has(self, digest: str) -> bool:
        """Whether somebody inside has this token."""
        if digest not in self._known and self.clock() - self._looked >= LOOK_SECONDS:
            self._looked = self.clock()
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    found = await read(self.store.token_digests)
            except (UnreachableError, TimeoutError):
                return False
            self._known = {self.admin_hash, *found}
        return digest in self._known

    def add(self, digest: str) -> None:
        """Add somebody who has just joined."""
        self._known.add(digest)
