"""Conclusions in words: nothing is claimed if its interval includes zero."""

from termdp.intervals import Interval, difference
from termdp.pages import counted
from termdp.provenance import version_of
from termdp.report.analysis import (
    BASELINE,
    CEILING,
    BestAgainstBest,
    Findings,
    counterpart,
)
from termdp.report.names import column_name, method_name
from termdp.report.results import Results
from termdp.report.tables import number, percent


def conclusions(results: Results, findings: Findings) -> list[str]:
    """Sentences, the most important first."""
    found = [
        sentence
        for sentence in (
            *best_sentences(findings),
            *(_termpg_sentence(results, row) for row in results.of("termpg")),
            _naive_sentence(results),
            _oracle_sentence(results),
            _costs_sentence(results),
            _chance_sentence(findings),
            _gaps_sentence(results),
            _version_sentence(results),
        )
        if sentence
    ]
    return found or ["There is only one method here: nothing to compare."]


def best_sentences(findings: Findings) -> list[str]:
    """Where the best TermPG is better, worse, or neither, than the best PG."""
    supported = [best for best in findings.best if best.is_supported]
    contradicted = [best for best in findings.best if best.is_contradicted]
    undecided = [best for best in findings.best if best.is_undecided]
    decided = [*supported, *contradicted, *undecided]
    unclear = [best for best in findings.best if best not in decided]
    who, whom = ("It", "") if supported else ("The best TermPG", " than the best PG")
    sentences = (
        (supported, "The best TermPG earns more than the best PG on {}."),
        (contradicted, f"{who} earns less{whom} on {{}}."),
        (
            undecided,
            "Not settled: {}. The interval of the ratio (resampled seeds) or that of the "
            "difference (Welch's t) excludes zero, but not both. Nothing is claimed.",
        ),
        (
            unclear,
            "No difference between the best TermPG and the best PG is shown on {}: both "
            "the interval of the ratio and that of the difference include zero.",
        ),
    )
    return [
        sentence.format(listed([_with_improvement(best) for best in group]))
        for group, sentence in sentences
        if group
    ]


def _with_improvement(best: BestAgainstBest) -> str:
    low, high = percent(best.relative.low), percent(best.relative.high)
    return (
        f"{column_name(best.column)} ({percent(best.relative.value)}, {low} … {high})"
    )


def _termpg_sentence(results: Results, row: str) -> str:
    """On which environments a method is better or worse than its counterpart."""
    gaps = _against_counterpart(results, row)
    if not gaps:
        return ""
    pg = _counterpart_name(results, row)
    better = [column_name(c) for c, gap in gaps.items() if gap.low > 0]
    worse = [column_name(c) for c, gap in gaps.items() if gap.high < 0]
    rest = len(gaps) - len(better) - len(worse)
    parts = [
        f"better than {pg} on {listed(better)}" if better else "",
        f"worse than {pg} on {listed(worse)}" if worse else "",
        f"not told apart from {pg} on {rest} of {counted(len(gaps), 'environment')}"
        if rest
        else "",
    ]
    return f"{_spoken(row)} is " + "; ".join(part for part in parts if part) + "."


def _against_counterpart(results: Results, row: str) -> dict[str, Interval]:
    """Difference of means to the PG of the same discount, by environment."""
    return {
        column: difference(results.values(column, row), results.values(column, base))
        for column in results.columns
        if results.has(column, row)
        and (base := counterpart(results, column, row)) is not None
    }


def _counterpart_name(results: Results, row: str) -> str:
    ran = [c for c in results.columns if results.has(c, row)]
    bases = dict.fromkeys(counterpart(results, c, row) for c in ran)
    return " or ".join(_spoken(base) for base in bases if base is not None)


def _spoken(row: str) -> str:
    return method_name(row).replace(", discount ", " with discount ")


def _naive_sentence(results: Results) -> str:
    """How much of the paper's gain a baseline that ignores ends explains."""
    both = [
        c
        for c in results.columns
        if results.has(c, "pg_naive") and results.has(c, BASELINE)
    ]
    if not both:
        return ""
    weak = [
        c
        for c in both
        if difference(results.values(c, BASELINE), results.values(c, "pg_naive")).low
        > 0
    ]
    if not weak:
        return "Ignoring all ends, as the published code does, is not shown to hurt PG."
    numbers = [
        f"{column_name(c)} ({number(results.mean(c, 'pg_naive', 'return_mean'))} "
        f"against {number(results.mean(c, BASELINE, 'return_mean'))})"
        for c in weak
    ]
    return (
        "PG that ignores all ends, as the published code does, earns less than PG that "
        f"treats them as ends on {listed(numbers)}: part of the published gains may come "
        "from this weak baseline."
    )


def _oracle_sentence(results: Results) -> str:
    """Where knowing the costs helps an agent of any discount."""
    gaps = {row: _against_counterpart(results, row) for row in results.of(CEILING)}
    ran = [c for c in results.columns if any(c in found for found in gaps.values())]
    if not ran:
        return ""
    clear = [
        column_name(c)
        for c in ran
        if any(c in found and found[c].low > 0 for found in gaps.values())
    ]
    if not clear:
        return (
            "Even an agent that is told the true costs is not clearly better than PG "
            "(of the same discount, if that ran) on any environment here. There is no "
            "gap that learned costs could close."
        )
    return (
        "An agent that is told the true costs is clearly better than PG (of the same "
        f"discount, if that ran) on {listed(clear)}, {len(clear)} of "
        f"{counted(len(ran), 'environment')}. There, learned costs can help."
    )


def _costs_sentence(results: Results) -> str:
    row = next(iter(results.of("termpg")), "termpg")
    found = {
        column: correlation
        for column in results.columns
        if (correlation := results.mean(column, row, "cost_corr")) is not None
    }
    if not found:
        return ""
    words = listed([f"{column_name(c)} {number(v, 2)}" for c, v in found.items()])
    return (
        f"Correlation of the costs that {_spoken(row)} learned with the true costs: "
        f"{words}. It saw only the stops, never the costs or the bias."
    )


def _chance_sentence(findings: Findings) -> str:
    count = len(findings.against_pg)
    if count < 10:
        return ""
    return (
        f"The tables compare {count} cells with PG; about {round(0.05 * count)} of them "
        "would be marked by chance alone."
    )


def _gaps_sentence(results: Results) -> str:
    parts = []
    if results.missing:
        parts.append(f"{results.missing} planned runs are missing")
    if results.thin:
        cells = listed(
            [f"{column_name(c)} / {method_name(r)}" for c, r in results.thin]
        )
        parts.append(
            "left out, because fewer than two seeds have a return (not run, or no "
            f"episode ended in the last tenth): {cells}"
        )
    failures = sum(len(m["failures"]) for m in results.manifests)
    if failures:
        parts.append(f"{failures} jobs failed (see manifest.json)")
    left = [
        f"{label} ({why})"
        for manifest in results.manifests
        for label, why in manifest["left_out"].items()
    ]
    if left:
        parts.append(f"environments left out: {listed(list(dict.fromkeys(left)))}")
    return "Incomplete: " + "; ".join(parts) + "." if parts else ""


def _version_sentence(results: Results) -> str:
    """Say so if another version made the results: settings may differ in meaning."""
    made_by, here = results.manifests[0]["versions"]["termdp"], version_of("termdp")
    if made_by == here:
        return ""
    return f"Made by termdp {made_by}, reported by termdp {here}."


def listed(words: list[str]) -> str:
    """Words with commas and an `and`."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]
