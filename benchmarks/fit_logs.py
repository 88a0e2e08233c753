"""How much time and memory `termdp fit` takes on a long log with a given rate of stops.

    python benchmarks/fit_logs.py --rows 10000000 --rate 1e-5

Makes the log with a known observer (window 20, eight observations, three actions), fits
it in a process of its own, and prints what was found beside the truth.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

WINDOW, LENGTH = 20, 200
WEIGHTS = np.array([0.3, 0.2, 0.1, -0.2, 0.0, 0.0, 0.0, 0.0])
OF_ACTION = np.array([0.0, 0.1, 0.5])
COLUMNS = [f"o{index}" for index in range(len(WEIGHTS))]


def drawn(rng: np.random.Generator, sessions: int) -> tuple[np.ndarray, ...]:
    """Observations, actions and accumulated costs of whole sessions."""
    shape = (sessions, LENGTH)
    seen = rng.normal(size=(*shape, len(WEIGHTS))).astype(np.float32)
    actions = rng.choice(3, shape, p=[0.5, 0.3, 0.2])
    costs = seen @ WEIGHTS + OF_ACTION[actions]
    sums = np.cumsum(np.pad(costs, ((0, 0), (1, 0))), axis=1)
    first = np.maximum(np.arange(LENGTH) - WINDOW + 1, 0)
    return seen, actions, sums[:, 1:] - sums[:, first]


def bias_for(rate: float) -> float:
    """The bias that stops about that share of the steps."""
    sums = drawn(np.random.default_rng(1), 2000)[2]
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        too_many = np.mean(1 / (1 + np.exp(middle - sums))) > rate
        low, high = (middle, high) if too_many else (low, middle)
    return high


def write_log(path: Path, rows: int, rate: float) -> dict:
    """Write a Parquet file, a few sessions at a time; return the truth about it."""
    rng = np.random.default_rng(0)
    bias, written, stops, session = bias_for(rate), 0, 0, 0
    writer = None
    while written < rows:
        count = 2000
        seen, actions, sums = drawn(rng, count)
        stop = rng.random(sums.shape) < 1 / (1 + np.exp(bias - sums))
        length = np.where(stop.any(axis=1), stop.argmax(axis=1) + 1, LENGTH)
        kept = np.arange(LENGTH) < length[:, None]
        names = np.broadcast_to(
            np.arange(session, session + count)[:, None], kept.shape
        )
        table = pa.table(
            {"session": names[kept], "action": actions[kept], "left": stop[kept]}
            | {name: seen[..., i][kept] for i, name in enumerate(COLUMNS)}
        )
        writer = writer or pa.parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
        written, session = written + table.num_rows, session + count
        stops += int(stop[kept].sum())
    assert writer is not None
    writer.close()
    return {"rows": written, "stops": stops, "bias": bias, "window": WINDOW}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rate", type=float, default=1e-3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "log.parquet", Path(folder) / "fit"
        truth = write_log(path, args.rows, args.rate)
        words = ["fit", path, "--session", "session", "--stopped", "left", "--out", out]
        words += ["--observations", *COLUMNS, "--actions", "action"]
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-m", "termdp", *map(str, words)], check=True)
        took = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = json.loads((out / "fit.json").read_text())
    wanted = dict(zip(COLUMNS, WEIGHTS, strict=True))
    wanted |= {"action=1": OF_ACTION[1], "action=2": OF_ACTION[2]}
    inside = sum(
        low <= wanted[name] <= high
        for name, row in found["costs"].items()
        if name in wanted
        for low, high in [row["interval"]]
    )
    print(f"log: {truth}, {100 * truth['stops'] / truth['rows']:.2g}% of rows")
    print(
        f"fit: {took:.0f} s ({used.ru_utime:.0f} s of processor), "
        f"{used.ru_maxrss / 2**20:.2f} GiB at most"
    )
    print(
        f"window {found['window']} {found['window_interval']}, bias "
        f"{found['bias']:.3f} {found['bias_interval']}, {inside} of {len(wanted)} costs "
        f"inside their intervals, AUC {found['auc']:.3f}"
    )


if __name__ == "__main__":
    main()
