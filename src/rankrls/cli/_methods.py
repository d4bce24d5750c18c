"""The learners that ``fit`` and ``cv`` know by name: one row a method, with its estimator and the options it takes.

Nothing heavy is imported here: ``--help`` reads the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankrls._errors import InputError
from rankrls._nearest import did_you_mean
from rankrls.cli._options import Options

__all__ = ["METHODS", "Method", "able_to", "build", "takers"]


@dataclass(frozen=True)
class Method:
    """A learner.

    Attributes
    ----------
    name, estimator, summary : str
        What ``--method`` calls it, its class, and what its help says.
    takes : str
        The options that are parameters of the estimator, between blanks; another one that is given is refused.
    traits : str
        What it can do or needs, between blanks.

        - validates_pairs: ``fit_pairs`` takes validation data.
        - needs_vali: it chooses by validation data only; without them it takes its options as they are.
        - keeps_best: an interrupted fit leaves the best model so far.
        - leaves_pairs_out: pairs can be held out of it without refitting.
        - labels_only: it learns from the labels of TRAIN alone, neither from preferences nor from validation data.
    reads : str
        The options of data that it can learn from and few others can, between blanks.
    single : str
        Those of its options of which it takes one value only.
    reports : str
        Fitted attributes that say what was chosen, beside ``best_params_``.
    adapt : callable or None
        The estimator's parameters from those that were given, or a refusal.
    """

    name: str
    estimator: str
    summary: str
    takes: str
    traits: str = ""
    reads: str = ""
    single: str = ""
    reports: str = "alpha_"
    adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def has(self, trait: str) -> bool:
        """Whether it has a trait."""
        return trait in self.traits.split()

    def learns_from(self, option: str) -> bool:
        """Whether it learns from the data of an option."""
        return option in self.reads.split()


def _sparse(given: dict[str, Any]) -> dict[str, Any]:
    if given["kernel"] == "linear":
        raise InputError(
            "{method=sparse} expands over items: give a kernel other than linear, as in {kernel=rbf}. For a linear "
            "model the default method is exact and faster.",
            parameter="kernel",
        )
    return given


def _pursuit(given: dict[str, Any]) -> dict[str, Any]:
    return {"dictionary": "features" if given["kernel"] == "linear" else "kernel", **given}


def _ranksvm(given: dict[str, Any]) -> dict[str, Any]:
    if "tol" in given and not 0.0 < given["tol"] < 1.0:
        raise InputError("{tol} of {method=ranksvm} must be between 0 and 1; got {0!r}.", given["tol"], parameter="tol")
    for name in (name for name in ("n_basis", "basis", "random_state") if name in given):
        problem = f"{{{name}}} needs {{n_basis}}: without it every item is in the basis."
        if given["kernel"] == "linear":
            problem = f"{{{name}}} needs a kernel other than linear, as in {{kernel=rbf}}: weights have no basis."
        elif "n_basis" in given:
            break
        raise InputError(problem, parameter=name)
    return given


_GRAPH = "ties balance regression_weight cv"
_KERNEL = "kernel gamma degree coef0"
_METHODS = (
    Method(
        "rankrls",
        "RankRLSCV",
        "exact, by one factorisation",
        f"alphas {_GRAPH} {_KERNEL} rule positive",
        "leaves_pairs_out",
    ),
    Method(
        "auto",
        "AutoRankRLS",
        "chooses among linear, degree-2 and Gaussian models on raw and standardised features",
        "cv rule n_basis random_state within_query time_limit nested",
        "labels_only",
        reports="optimism_ nested_score_ nested_score_error_",
    ),
    Method(
        "cg",
        "CGRankRLS",
        "conjugate gradients, for large sparse data",
        f"alphas {_GRAPH} rule selection max_iter tol patience random_state",
        "validates_pairs keeps_best",
        single="ties balance",
        reports="alpha_ n_iter_",
    ),
    Method(
        "sparse",
        "SparseRankRLSCV",
        "RankRLS over a basis of few items, for kernels on very many rows",
        f"alphas {_GRAPH} {_KERNEL} rule n_basis basis random_state",
        "leaves_pairs_out",
        adapt=_sparse,
    ),
    Method(
        "pursuit",
        "RankingPursuitCV",
        "few features, or with --kernel few items, taken greedily",
        f"{_GRAPH} {_KERNEL} rule max_basis",
        reports="",
        adapt=_pursuit,
    ),
    Method(
        "greedy",
        "GreedyRankRLS",
        "few features, taken by exact leave-query-out",
        f"alphas {_GRAPH} rule max_features",
        reports="n_features_ alpha_",
    ),
    Method(
        "transductive",
        "TransductiveRankRLSCV",
        "also finds labels for queries without any, so that cross-validation goes best",
        f"alphas balance regression_weight cv {_KERNEL} rule n_basis basis random_state penalty",
        "labels_only",
        "unscored",
    ),
    Method(
        "co-rankrls",
        "CoRankRLS",
        "several views that agree on rows without labels, for few scored queries",
        f"alphas {_GRAPH} {_KERNEL} rule mu n_views random_state",
        "labels_only",
        "unscored",
        single=_KERNEL,
    ),
    Method(
        "co-pursuit",
        "CoRankingPursuitCV",
        "the same by few features, or with --kernel few items, in each of two views, taken greedily",
        f"{_GRAPH} {_KERNEL} rule max_basis nu",
        "labels_only",
        "unscored",
        reports="",
        adapt=_pursuit,
    ),
    Method(
        "conditional",
        "ConditionalRankRLSCV",
        "ranks the same items for each row, with a column of labels for each item",
        f"alphas cv {_KERNEL} rule fit_intercept hold_out",
        "labels_only",
        "utilities items",
        single=_KERNEL,
    ),
    Method(
        "ranksvm",
        "RankSVMCV",
        "pairwise hinge losses, C chosen by refits",
        f"Cs balance cv {_KERNEL} rule loss n_basis basis random_state max_iter tol",
        reports="C_ n_support_",
        adapt=_ranksvm,
    ),
    Method(
        "rankboost",
        "RankBoost",
        "boosted threshold stumps, their number chosen by --vali",
        "balance rule n_estimators learning_rate max_bins patience",
        "needs_vali",
        single="balance",
        reports="n_estimators_ stopped_",
    ),
)
METHODS = {method.name: method for method in _METHODS}


def takers(name: str) -> list[str]:
    """The methods that take an option."""
    return [method.name for method in METHODS.values() if name in method.takes.split()]


def readers(name: str) -> list[str]:
    """The methods that learn from the data of an option that few read."""
    return [method.name for method in METHODS.values() if method.learns_from(name)]


def able_to(trait: str) -> str:
    """The methods that have a trait, in words."""
    return " and ".join(method.name for method in METHODS.values() if method.has(trait))


def build(options: Options, **parameters: Any) -> Any:
    """The estimator that the options ask for.

    Raises
    ------
    InputError
        For a name that is none, for an option that is given and means nothing to the method, and for several values of
        one that has to be one.
    """
    import rankrls

    if options.method not in METHODS:
        problem, near = "{method} must be one of {0}; got {1!r}.", did_you_mean(options.method, METHODS)
        raise InputError(problem, ", ".join(METHODS), options.method, remedy=near, parameter="method")
    method = METHODS[options.method]
    _check_traits(options, method)
    for name in options.changed():
        able, value = takers(name) or readers(name), getattr(options, name)
        if able and method.name not in able:
            problem = f"{{{name}}} means nothing to {{0}}: it is an option of --method {{1}}, not of {{2}}."
            raise InputError(problem, f"--method {method.name}", " and ".join(able), method.name, parameter=name)
        if name in method.single.split() and isinstance(value, tuple):
            problem = f"{{{name}}} of --method {{0}} is one value; got {{1!r}}."
            raise InputError(problem, method.name, ",".join(map(str, value)), parameter=name)
    given = {name: getattr(options, name) for name in method.takes.split()}
    given = {name: value for name, value in given.items() if value is not None} | parameters
    if method.adapt is not None:
        given = method.adapt(given)
    out = getattr(rankrls, method.estimator)(**given)
    if "positive" in given:
        out._check()
    return out


def _check_traits(options: Options, method: Method) -> None:
    """Refuse what the method cannot do."""
    if options.leave_pair_out and not method.has("leaves_pairs_out"):
        raise InputError(
            "{leave_pair_out} holds out pairs without refitting, which --method {0} can do; {1} would need a refit for "
            "each pair. Judge it by {cv} or {vali}.",
            *(able_to("leaves_pairs_out"), options.method),
            parameter="leave_pair_out",
        )
    if method.learns_from("utilities") and options.utilities is None:
        problem = "--method {0} ranks the columns of a table: name those of its items by {utilities}, as in 'item_*'."
        raise InputError(problem, method.name, parameter="utilities")
    if options.utilities is not None and options.scale in ("minmax", "standard"):
        problem = "{scale} {0} scales inside a query, which is one row here."
        remedy = f"By the training rows: {{scale={options.scale}-all}}."
        raise InputError(problem, options.scale, remedy=remedy, parameter="scale")
    if method.has("labels_only") and (options.by_pairs or options.vali is not None):
        raise InputError(
            "--method {0} learns from the labels of TRAIN, and chooses by leaving out queries of it: preferences, "
            "{vali} and {event} mean nothing to it.",
            method.name,
            remedy="Judge it with {test}.",
            parameter="method",
        )
