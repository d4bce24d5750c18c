"""The values of a command's options, and what they mean together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

METHODS = {
    "rankrls": "RankRLSCV",
    "auto": "AutoRankRLS",
    "cg": "CGRankRLS",
    "sparse": "SparseRankRLSCV",
    "pursuit": "RankingPursuitCV",
    "greedy": "GreedyRankRLS",
    "transductive": "TransductiveRankRLSCV",
    "co-rankrls": "CoRankRLS",
    "co-pursuit": "CoRankingPursuitCV",
    "ranksvm": "RankSVMCV",
    "rankboost": "RankBoost",
}
"""The learning methods of ``rankrls fit``, and their estimators."""
UNLABELLED = ("transductive", "co-rankrls", "co-pursuit")
"""Methods that use rows without labels."""


class Options(SimpleNamespace):
    """The options of one command. Options that only other commands have are None."""

    def given(self, *names: str) -> dict[str, Any]:
        """Values of the named options that were given."""
        known = vars(self)
        return {name: known[name] for name in names if known[name] is not None and known[name] is not False}

    @property
    def votes(self) -> bool:
        """Whether the files contain votes, with both sides in a row."""
        return bool(self.given("left", "right", "preferred"))

    @property
    def by_pairs(self) -> bool:
        """Whether the model is fitted on preferences, from votes, pairs of rows or censored times."""
        return self.votes or bool(self.given("pairs", "event"))

    @property
    def of_items(self) -> bool:
        """Whether all items form one ranking, evaluated by its pairs."""
        one = self.given("event", "all_rows") or self.cv == "leave_pair_out"
        return bool(one) and self.pairs is None and not self.votes

    @property
    def measures(self) -> tuple[str, ...]:
        """The measure that selects the model, and others to print."""
        return self.metric or ("pair_accuracy" if self.by_pairs or self.of_items else "disagreement",)

    @property
    def tool(self) -> str:
        """The convention of the measures."""
        return self.convention or ("letor" if self.qrels is None else "trec")

    def called(self, measure: str) -> str:
        """Name of a measure: the share of ordered pairs of one ranking is the C-index."""
        return "C-index" if measure == "pair_accuracy" and self.of_items else measure

    @property
    def roles(self) -> dict[str, Any]:
        """Columns named by options, by their roles."""
        return self.given("label", "qid", "id", "features", "ignore")

    def reading(self, *, queries: Any = "optional", labels: Any = "ignored", **how: Any) -> Any:
        """Options for reading files of rows; by default as a model needs them."""
        from rankrls.io.reading import ReadOptions

        sizes = None if self.votes else self.group
        if sizes is not None:
            sizes.stat()  # a column of query ids is none
        more = self.given("event", "position", "impressions")
        return ReadOptions(**self.roles, **more, sizes=sizes, queries=queries, labels=labels, **how)


def option_text(words: Iterable[str]) -> str:
    """Join words by commas, as options with several names need them."""
    return ",".join(f'"{word}"' if "," in word else word for word in words)


def flag(name: str) -> str:
    """The option for a parameter of the commands."""
    return "--global" if name == "all_rows" else f"--{name.replace('_', '-')}"


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not None."""
    return {name: value for name, value in parameters.items() if value is not None}
