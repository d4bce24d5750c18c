"""Tables and tests of the collaborative filtering experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from _collaborative_paper import CLAIMS, TABLES, Claim
from _collaborative_problem import Method
from _collaborative_protocol import GROUPS, Choice, Group, Part, Sizes
from _text import aligned, headed, p_text
from numpy.typing import NDArray

from rankrls.comparison import bootstrap_interval, compare_per_query

_TITLES = {
    "full": "Disagreement error, all training ratings",
    "half": "Disagreement error, half of the training ratings unscored",
    "mse": "Mean squared error, all training ratings; parameters chosen by mean squared error",
}
_LEVEL = 0.05
_RESAMPLES = 2000


@dataclass(frozen=True)
class Result:
    """What was measured: ``parts[bounds]["full" or "half"]``."""

    name: str
    published: str | None
    sizes: Sizes
    methods: dict[str, tuple[Method, ...]]
    groups: list[Group]
    parts: dict[tuple[int, int], dict[str, Part]]
    seconds: float

    @property
    def tables(self) -> list[str]:
        first = self.parts[self.groups[0].bounds]
        return [t for t in _TITLES if ("full" if t == "mse" else t) in first]

    def rows(self, table: str) -> tuple[Method, ...]:
        return self.methods["half" if table == "half" else "full"]

    def values(self, table: str, bounds: tuple[int, int], method: str) -> NDArray[np.float64]:
        """One value a test user; the mean of them for one who was drawn more than once."""
        measure = "mse" if table == "mse" else "disagreement"
        part = self.parts[bounds]["full" if table == "mse" else table]
        values = part.figures[measure, measure][method]
        _, user = np.unique(part.users, return_inverse=True)
        return np.bincount(user, values) / np.bincount(user)

    def choice(self, table: str, bounds: tuple[int, int], method: str) -> Choice:
        measure = "mse" if table == "mse" else "disagreement"
        return self.parts[bounds]["full" if table == "mse" else table].choices[measure][method]

    def paper(self, table: str, bounds: tuple[int, int], method: str) -> float | None:
        if self.published is None or bounds not in GROUPS or table not in TABLES[self.published]:
            return None
        figures = TABLES[self.published][table][1].get(method)
        return None if figures is None else figures[GROUPS.index(bounds)]


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper on one group, tested. ``runs`` of the repetitions have the sign of the difference."""

    claim: Claim
    bounds: tuple[int, int]
    difference: float
    low: float
    high: float
    p_value: float
    won: int
    tied: int
    lost: int
    runs: int
    paper: float | None

    @property
    def text(self) -> str:
        significant = self.p_value < _LEVEL
        if self.claim.says == "equal":
            return "they differ" if significant else "confirmed"
        if self.claim.says == "compared":
            return "no difference" if not significant else "better" if self.difference < 0.0 else "worse"
        if not significant:
            return "not confirmed"
        return "confirmed" if self.difference < 0.0 else "the reverse"


def verdicts(result: Result) -> list[Verdict]:
    """Every claim about two methods that are there, on every group."""
    out = []
    for claim in CLAIMS:
        if claim.part not in result.tables:
            continue
        names = {m.name for m in result.rows(claim.part)}
        if claim.first in names and claim.second in names:
            out += [_verdict(result, claim, group.bounds) for group in result.groups]
    return out


def _verdict(result: Result, claim: Claim, bounds: tuple[int, int]) -> Verdict:
    values = {name: result.values(claim.part, bounds, name) for name in (claim.first, claim.second)}
    (pair,) = compare_per_query(values, greater_is_better=False, n_resamples=_RESAMPLES, random_state=0).pairs
    part = result.parts[bounds]["full" if claim.part == "mse" else claim.part]
    measure = "mse" if claim.part == "mse" else "disagreement"
    table = part.figures[measure, measure]
    gaps = table[claim.first] - table[claim.second]
    means = np.bincount(part.repetition, gaps) / np.bincount(part.repetition)
    papers = [result.paper(claim.part, bounds, name) for name in (claim.first, claim.second)]
    return Verdict(
        claim,
        bounds,
        pair.difference,
        pair.low,
        pair.high,
        pair.p_wilcoxon,
        pair.wins,
        pair.ties,
        pair.losses,
        int(np.sum(np.sign(means) == np.sign(pair.difference))),
        None if papers[0] is None or papers[1] is None else papers[0] - papers[1],
    )


def as_text(result: Result) -> str:
    s = result.sizes
    title = f"{result.name}: {s.users} test users, {s.repetitions} repetitions, {s.reference} reference users"
    parts = [
        headed(title, "="),
        "Means over test users, half the width of 95 % bootstrap intervals, the paper's figures.",
    ]
    for table in result.tables:
        title = _TITLES[table]
        if result.published and table in TABLES[result.published]:
            title += f" (the paper's {TABLES[result.published][table][0]})"
        parts += ["", headed(title), _table(result, table)]
    names = {m.name: m.what for m in (*result.methods["full"], *result.methods["half"])}
    parts += ["", *(f"  {name}: {what}" for name, what in names.items())]
    found = verdicts(result)
    if found:
        title = "What the paper claims (<, =) and what it does not (?): Wilcoxon's signed ranks over the test users"
        parts += ["", headed(title), _claim_table(found, s.repetitions)]
    return "\n".join([*parts, ""])


def as_json(result: Result) -> dict[str, Any]:
    return {
        "data": result.name,
        "sizes": vars(result.sizes),
        "seconds": result.seconds,
        "tables": {
            table: {
                _name(g.bounds): {
                    m.name: {
                        "mean": float(result.values(table, g.bounds, m.name).mean()),
                        "interval": _interval(result, table, g.bounds, m.name),
                        "paper": result.paper(table, g.bounds, m.name),
                        "width": result.choice(table, g.bounds, m.name).width,
                        **result.choice(table, g.bounds, m.name).setting,
                    }
                    for m in result.rows(table)
                }
                for g in result.groups
            }
            for table in result.tables
        },
        "claims": [{**vars(v), "claim": vars(v.claim), "verdict": v.text} for v in verdicts(result)],
    }


def _table(result: Result, table: str) -> str:
    digits = 1 if table == "mse" else 3
    head = ["method"]
    for group in result.groups:
        head += [_name(group.bounds), "+-", "paper"] + ([] if table == "mse" else ["basis"])
    rows = [head]
    for method in result.rows(table):
        row = [method.name]
        for group in result.groups:
            low, high = _interval(result, table, group.bounds, method.name)
            paper = result.paper(table, group.bounds, method.name)
            row.append(f"{result.values(table, group.bounds, method.name).mean():.{digits}f}")
            row += [f"{(high - low) / 2:.{digits}f}", "" if paper is None else f"{paper:.{digits}f}"]
            row += [] if table == "mse" else [f"{result.parts[group.bounds][table].sizes[method.name].mean():.1f}"]
        rows.append(row)
    return aligned(rows)


def _claim_table(found: list[Verdict], repetitions: int) -> str:
    rows = [["claim", "group", "paper", "difference", "95% interval", "p", "won/tied/lost", "runs", "verdict"]]
    for v in found:
        digits = 1 if v.claim.part == "mse" else 3
        sign = {"better": "<", "equal": "=", "compared": "?"}[v.claim.says]
        rows.append(
            [
                f"{v.claim.part}: {v.claim.first} {sign} {v.claim.second}",
                _name(v.bounds),
                "" if v.paper is None else f"{v.paper:+.{digits}f}",
                f"{v.difference:+.{digits + 1}f}",
                f"[{v.low:+.{digits + 1}f}, {v.high:+.{digits + 1}f}]",
                p_text(v.p_value),
                f"{v.won}/{v.tied}/{v.lost}",
                f"{v.runs}/{repetitions}",
                v.text,
            ]
        )
    return aligned(rows)


def _interval(result: Result, table: str, bounds: tuple[int, int], method: str) -> tuple[float, float]:
    interval = bootstrap_interval(result.values(table, bounds, method), n_resamples=_RESAMPLES, random_state=0)
    return interval.low, interval.high


def _name(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]}-{bounds[1]}"
