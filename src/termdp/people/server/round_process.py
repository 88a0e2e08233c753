"""The process of a round beside a server: the lowest priority, and no longer than it.

python -m termdp.people.server.round_process PARENT STUDY DB FOLDER

The process PARENT has begun it. If that ends, however it ends, so does this one: nothing
is lost, since a round counts when all of it is in the store, and a later one goes on.
"""

import os
import runpy
import sys
import threading
import time
from collections.abc import Sequence

NICE = 19
_LOOK_SECONDS = 0.5


def main(words: Sequence[str]) -> None:
    """One round of a study, by the command that everybody uses."""
    parent, study, db, folder = words
    os.nice(NICE)
    threading.Thread(target=_end_after, args=(int(parent),), daemon=True).start()
    command = ["studies", "improve", study, "--db", db, "--out", folder, "--json"]
    sys.argv = ["termdp", *command]
    runpy.run_module("termdp", run_name="__main__", alter_sys=True)


def _end_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
