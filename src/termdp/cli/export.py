"""`termdp export`: a trained policy as an ONNX file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True)
class Args:
    """Write a policy as one ONNX graph, for browsers, C++ and so on (docs/export.md).

    Example: termdp export runs/breakout-termpg policy.onnx
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a run, a file of `agent.save`, or a name from `termdp agents`."""
    out: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]
    """File to write, ending in .onnx."""
    seed: int | None = None
    """Which of the run's seeds; the one with the best return unless given."""


def run(args: Args) -> None:
    """Load, translate, write."""
    from termdp.runs.export import check_out
    from termdp.runs.train import load

    check_out(args.out)
    agent = load(args.run, args.seed)
    agent.to_onnx(args.out)
    print(f"{args.out}: {agent!r}")
