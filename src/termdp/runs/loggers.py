"""Progress to TensorBoard and Weights & Biases, besides `metrics.jsonl`."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Log = Callable[[Any], None]


@contextlib.contextmanager
def open_all(args: Any, out: Path) -> Iterator[Log]:
    """A function that passes each `Progress` to the requested loggers."""
    makers = []
    if args.tensorboard:
        makers.append(tensorboard_log)
    if args.wandb:
        makers.append(wandb_log)
    with contextlib.ExitStack() as stack:
        logs = [stack.enter_context(maker(out)) for maker in makers]

        def log(progress: Any) -> None:
            for one in logs:
                one(progress)

        yield log


@contextlib.contextmanager
def tensorboard_log(out: Path) -> Iterator[Log]:
    """Scalars per seed in `out/tensorboard`; needs the extra `tensorboard`."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError:
        raise ValueError(_missing("tensorboard")) from None
    writers: dict[int, Any] = {}

    def log(progress: Any) -> None:
        for row in progress.rows:
            if row["seed"] not in writers:
                folder = out / "tensorboard" / f"seed{row['seed']}"
                writers[row["seed"]] = EventFileWriter(str(folder))
            values = [
                Summary.Value(tag=name, simple_value=value)
                for name, value in _scalars(row).items()
            ]
            event = Event(
                wall_time=time.time(), step=row["step"], summary=Summary(value=values)
            )
            writers[row["seed"]].add_event(event)

    try:
        yield log
    finally:
        for writer in writers.values():
            writer.close()


@contextlib.contextmanager
def wandb_log(out: Path) -> Iterator[Log]:
    """One Weights & Biases run per call; needs the extra `wandb`."""
    try:
        import wandb
    except ImportError:
        raise ValueError(_missing("wandb")) from None
    run = wandb.init(project="termdp", name=out.name, dir=str(out.parent))

    def log(progress: Any) -> None:
        values = {
            f"seed{row['seed']}/{name}": value
            for row in progress.rows
            for name, value in _scalars(row).items()
        }
        run.log(values, step=progress.step)

    try:
        yield log
    finally:
        run.finish()


def _scalars(row: dict[str, Any]) -> dict[str, float]:
    skipped = ("step", "seed")
    return {k: float(v) for k, v in row.items() if v is not None and k not in skipped}


def _missing(extra: str) -> str:
    return (
        f"expected the package {extra} for --{extra}, but it is not installed: "
        f"pip install 'termdp[{extra}]'"
    )
