"""`termdp fit` beside lifelines' time-varying Cox model, on people of SurvSet.

    python benchmarks/survival.py

Both are fitted to four fifths of the people and judged on the rest, five times. The first
measure is the log-likelihood per person of what happened at each time step. The second is
the C-index: of all pairs of one who has the event at a step and one who is still there,
how often does the first have the higher risk? Cox's hazards of a step come from its
baseline (Breslow's, which is rough where events are few), and from a constant one with
the same effects. SurvSet is GPL: it is read here and in tests, never by the package.
"""

import argparse
import warnings

import numpy as np
import pandas as pd
from lifelines import CoxTimeVaryingFitter
from SurvSet.data import SurvLoader

import termdp

# name: length of a time step, in the table's own unit
SETS = {"Rossi": 1.0, "epileptic": 30.0, "heart": 10.0, "csl": 0.25}
FOLDS = 5


def steps_of(name: str, step: float) -> tuple[pd.DataFrame, list[str]]:
    """One row per person and time step, and the names of the covariates."""
    frame = SurvLoader().load_dataset(name)["df"]
    words = [column for column in frame if column.startswith("fac_")]
    numbers = [column for column in frame if column.startswith("num_")]
    dummies = pd.get_dummies(frame[words].astype(str), drop_first=True).astype(float)
    dummies = dummies.loc[:, dummies.mean().between(0.02, 0.98)]
    frame = pd.concat([frame[["pid", "event", "time", "time2"]], dummies], axis=1).join(
        frame[numbers].astype(float)
    )
    frame = frame.sort_values(["pid", "time"], kind="stable")
    begin = np.floor(frame["time"] / step).astype(int)
    end = np.maximum(np.ceil(frame["time2"] / step).astype(int), begin + 1)
    frame = frame.assign(begin=begin, end=end)
    # Rows shorter than a step share it: the last one of a step counts.
    rows = frame.loc[frame.index.repeat(frame["end"] - frame["begin"])].copy()
    rows["t"] = rows["begin"] + rows.groupby(level=0).cumcount()
    rows["event"] = rows["event"] * (rows["t"] == rows["end"] - 1)
    rows = rows.groupby(["pid", "t"], as_index=False).last()
    after = rows.groupby("pid")["event"].cumsum() - rows["event"]
    rows = rows[after == 0].reset_index(drop=True)
    return rows, [*dummies.columns, *numbers]


def cox_logits(
    train: pd.DataFrame, test: pd.DataFrame, names: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Logits of the hazard of each row of `test`: Breslow's baseline, a constant one."""
    columns = ["pid", "event", "start", "stop", *names]
    made = CoxTimeVaryingFitter(penalizer=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.fit(
            train.assign(start=train["t"], stop=train["t"] + 1)[columns],
            id_col="pid",
            event_col="event",
            start_col="start",
            stop_col="stop",
        )
        risk = np.asarray(made.predict_log_partial_hazard(test[names]))
        before = np.asarray(made.predict_log_partial_hazard(train[names]))
    total = made.baseline_cumulative_hazard_.iloc[:, 0]
    grid = np.arange(0, max(train["t"].max(), test["t"].max()) + 2)
    filled = total.reindex(total.index.union(grid)).ffill().fillna(0.0).loc[grid]
    each = np.diff(filled.to_numpy())
    # A step without an event in training still has some hazard.
    each = np.maximum(each, 0.5 / len(train))
    constant = train["event"].sum() / np.exp(before).sum()

    def logits(hazard: np.ndarray) -> np.ndarray:
        return np.log(np.expm1(np.minimum(hazard, 30.0)))

    return logits(each[test["t"]] * np.exp(risk)), logits(constant * np.exp(risk))


def concordance(test: pd.DataFrame, risk: np.ndarray) -> tuple[float, int]:
    """How many pairs are concordant, and how many there are: see the module."""
    good, pairs = 0.0, 0
    for _, rows in test.assign(risk=risk).groupby("t"):
        events = rows.loc[rows["event"] == 1, "risk"].to_numpy()
        others = rows.loc[rows["event"] == 0, "risk"].to_numpy()
        gap = events[:, None] - others[None]
        good += float((gap > 0).sum() + 0.5 * (np.abs(gap) < 1e-12).sum())
        pairs += gap.size
    return good, pairs


def likelihoods(test: pd.DataFrame, logits: np.ndarray) -> np.ndarray:
    """Log-likelihood of each person."""
    signed = np.where(test["event"] == 1, logits, -logits)
    return (
        pd.Series(-np.logaddexp(0, -signed)).groupby(test["pid"].to_numpy()).sum()
    ).to_numpy()


def ours(train: pd.DataFrame, test: pd.DataFrame, names: list[str], **numbers: object):
    found = termdp.fit(
        train, session="pid", stopped="event", observations=names, **numbers
    )
    chance = found.costs(test)["stop_probability"].to_numpy()
    return np.log(chance) - np.log1p(-chance), found.memory.span


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.sets:
        rows, names = steps_of(name, SETS[name])
        people = rows["pid"].unique()
        events = int(rows["event"].sum())
        print(f"\n{name}: {len(people)} people, {events} events, {len(rows)} steps")
        order = np.random.default_rng(0).permutation(people)
        scores: dict[str, list] = {}
        pairs: dict[str, np.ndarray] = {}
        spans = []
        for fold in range(FOLDS):
            held = rows["pid"].isin(order[fold::FOLDS])
            train, test = rows[~held], rows[held].reset_index(drop=True)
            used = [one for one in names if train[one].nunique() > 1]
            chosen, span = ours(train, test, used)
            spans.append(span)
            timed = [*used, "t"]
            rate = train["event"].mean()
            cox, level = cox_logits(train, test, used)
            models = {
                "constant": np.full(len(test), np.log(rate / (1 - rate))),
                "termdp, last step": ours(train, test, used, window=1)[0],
                "termdp, last step and time": ours(train, test, timed, window=1)[0],
                "termdp, chosen window": chosen,
                "Cox, time-varying": cox,
                "Cox, constant baseline": level,
            }
            for model, logits in models.items():
                scores.setdefault(model, []).append(likelihoods(test, logits))
                pairs.setdefault(model, np.zeros(2))
                pairs[model] += concordance(test, logits)
        print("windows that were chosen:", spans)
        reference = np.concatenate(scores["Cox, time-varying"])
        for model, parts in scores.items():
            each = np.concatenate(parts)
            gap = each - reference
            error = 1.96 * gap.std() / np.sqrt(len(gap))
            good, total = pairs[model]
            print(
                f"| {model} | {each.mean():.3f} | {gap.mean():+.3f} ± {error:.3f} | "
                f"{good / total:.3f} |"
            )


if __name__ == "__main__":
    main()
