"""`termdp report`: a page about benchmark results, or a site about many."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console


@dataclass(frozen=True)
class Args:
    """Make a page, tables and figures from benchmark results.

    Example: termdp report results/paper
    """

    folders: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR")
    ]
    """Folder of `termdp bench`; several with the same settings make one report."""
    out: Path | None = None
    """Folder for report.html, tables.md and figures; the first DIR unless given."""
    site: Annotated[Path | None, tyro.conf.arg(metavar="OUT")] = None
    """Folder for one site about all DIRs. A DIR may be a fit, or hold such folders."""
    json: bool = False
    """Print only the findings on standard output, as JSON."""


def run(args: Args) -> None:
    """Read, compute, write."""
    from termdp.report.analysis import analyse, as_data
    from termdp.report.bench_page import write_report
    from termdp.report.results import load
    from termdp.report.words import conclusions

    if not args.folders:
        raise ValueError("expected a folder of results (termdp report results/paper)")
    if args.site is not None:
        _write_site(args, args.site)
        return
    console = Console(stderr=True)
    with console.status("reading the results") as status:
        results = load(args.folders)
        status.update("computing intervals")
        findings = analyse(results)
        page = write_report(
            results,
            findings,
            args.out or args.folders[0],
            lambda words: status.update(f"drawing {words}"),
        )
    sentences = conclusions(results, findings)
    if args.json:
        found = as_data(results, findings) | {"conclusions": sentences}
        print(json.dumps(found | {"page": str(page)}, indent=2))
        return
    for sentence in sentences:
        print(f"- {sentence}")
    print(f"look at {page.resolve()}")


def _write_site(args: Args, out: Path) -> None:
    from termdp.report.site import write_site

    if args.out is not None:
        raise ValueError("expected --site or --out, got both: --site names the folder")
    if out.exists() and not out.is_dir():
        raise ValueError(f"expected a folder for the site, got the file {out}")
    with Console(stderr=True).status("reading the results") as status:
        page, entries = write_site(
            args.folders, out, lambda words: status.update(f"making {words}")
        )
    if args.json:
        found = [dataclasses.asdict(entry) for entry in entries]
        print(json.dumps({"page": str(page), "results": found}, indent=2))
        return
    for entry in entries:
        print(f"- {entry.name}: {entry.about}")
    print(f"look at {page.resolve()}")
