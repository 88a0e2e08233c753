"""The process of a round: it has the lowest priority and ends with its server.

python -m termdp.people.server.round_process PARENT STUDY DB FOLDER

PARENT is the id of the server's process. When that ends, for whatever reason, this one
ends too. Nothing is lost: a round counts only once all of it is in the store, and a
later round continues the work.
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
    """Do one round of a study, by the same command that users run."""
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
