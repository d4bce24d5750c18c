"""The learners that ``fit`` and ``cv`` know by name: one row a method, with its estimator and the options it takes.

Nothing heavy is imported here: ``--help`` reads the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rankrls._errors import InputError
from rankrls._nearest import did_you_mean
from rankrls.cli._options import Options, flag_of

__all__ = ["METHODS", "Method", "build", "method_of"]


@dataclass(frozen=True)
class Method:
    """A learner.

    Attributes
    ----------
    name, estimator, summary : str
        What ``--method`` calls it, its class, and what its help says.
    takes : str
        The options that are parameters of the estimator, between blanks; another one that is given is refused.
    single : tuple of str
        Those of them of which it takes one value only.
    adapt : callable or None
        The estimator's parameters from those that were given, or a refusal.
    reports : tuple of str
        Fitted attributes that say what was chosen, beside ``best_params_``.
    widen : str
        The option that widens the grid which it chooses from.
    validates_pairs : bool
        Whether ``fit_pairs`` takes validation data.
    needs_vali : bool
        Whether it chooses by validation data only; without them it takes its options as they are.
    keeps_best : bool
        Whether an interrupted fit leaves the best model so far.
    leaves_pairs_out : bool
        Whether pairs can be held out of it without refitting.
    labels_only : bool
        Whether it learns from the labels of TRAIN and nothing else: neither preferences nor validation data.
    learns_unscored : bool
        Whether it learns from rows without labels too.
    ranks_columns : bool
        Whether a row is a query, with a label for each of the same items.
    """

    name: str
    estimator: str
    summary: str
    takes: str
    single: tuple[str, ...] = ()
    adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    reports: tuple[str, ...] = ("alpha_",)
    widen: str = "--alphas lo:hi:n"
    validates_pairs: bool = False
    needs_vali: bool = False
    keeps_best: bool = False
    leaves_pairs_out: bool = False
    labels_only: bool = False
    learns_unscored: bool = False
    ranks_columns: bool = False


def _rankrls(given: dict[str, Any]) -> dict[str, Any]:
    if "positive" in given and given["kernel"] != "linear":
        raise InputError("{positive} is about the weights of features: it needs {kernel=linear}.", parameter="positive")
    return given


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
    of_basis = [name for name in ("n_basis", "basis", "random_state") if name in given]
    if of_basis and given["kernel"] == "linear":
        problem = flag_of(of_basis[0]) + " needs a kernel other than linear, as in {kernel=rbf}: weights have no basis."
        raise InputError(problem, parameter=of_basis[0])
    if of_basis and "n_basis" not in given:
        problem = flag_of(of_basis[0]) + " needs {n_basis}: without it every item is in the basis."
        raise InputError(problem, parameter=of_basis[0])
    return given


_GRAPH = "ties balance regression_weight cv"
_KERNEL = "kernel gamma degree coef0"
METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "rankrls",
            "RankRLSCV",
            "exact, by one factorisation",
            f"alphas {_GRAPH} {_KERNEL} rule positive",
            adapt=_rankrls,
            leaves_pairs_out=True,
        ),
        Method(
            "auto",
            "AutoRankRLS",
            "chooses among linear, degree-2 and Gaussian models on raw and standardised features",
            "cv rule n_basis random_state within_query time_limit nested",
            reports=("optimism_", "nested_score_", "nested_score_error_"),
            labels_only=True,
        ),
        Method(
            "cg",
            "CGRankRLS",
            "conjugate gradients, for large sparse data",
            f"alphas {_GRAPH} rule selection max_iter tol patience random_state",
            single=("ties", "balance"),
            reports=("alpha_", "n_iter_"),
            validates_pairs=True,
            keeps_best=True,
        ),
        Method(
            "sparse",
            "SparseRankRLSCV",
            "RankRLS over a basis of few items, for kernels on very many rows",
            f"alphas {_GRAPH} {_KERNEL} rule n_basis basis random_state",
            adapt=_sparse,
            leaves_pairs_out=True,
        ),
        Method(
            "pursuit",
            "RankingPursuitCV",
            "few features, or with --kernel few items, taken greedily",
            f"{_GRAPH} {_KERNEL} rule max_basis",
            adapt=_pursuit,
            reports=(),
            widen="--max-basis P",
        ),
        Method(
            "greedy",
            "GreedyRankRLS",
            "few features, taken by exact leave-query-out",
            f"alphas {_GRAPH} rule max_features",
            reports=("n_features_", "alpha_"),
            widen="--max-features K or --alphas lo:hi:n",
        ),
        Method(
            "transductive",
            "TransductiveRankRLSCV",
            "also finds labels for queries without any, so that cross-validation goes best",
            f"alphas balance regression_weight cv {_KERNEL} rule n_basis basis random_state penalty",
            labels_only=True,
            learns_unscored=True,
        ),
        Method(
            "co-rankrls",
            "CoRankRLS",
            "several views that agree on rows without labels, for few scored queries",
            f"alphas {_GRAPH} {_KERNEL} rule mu n_views random_state",
            single=("kernel", "gamma", "degree", "coef0"),
            labels_only=True,
            learns_unscored=True,
        ),
        Method(
            "co-pursuit",
            "CoRankingPursuitCV",
            "the same by few features, or with --kernel few items, in each of two views, taken greedily",
            f"{_GRAPH} {_KERNEL} rule max_basis nu",
            adapt=_pursuit,
            reports=(),
            widen="--max-basis P",
            labels_only=True,
            learns_unscored=True,
        ),
        Method(
            "conditional",
            "ConditionalRankRLSCV",
            "ranks the same items for each row, with a column of labels for each item",
            f"alphas cv {_KERNEL} rule fit_intercept hold_out",
            single=("kernel", "gamma", "degree", "coef0"),
            labels_only=True,
            ranks_columns=True,
        ),
        Method(
            "ranksvm",
            "RankSVMCV",
            "pairwise hinge losses, C chosen by refits",
            f"Cs balance cv {_KERNEL} rule loss n_basis basis random_state max_iter tol",
            adapt=_ranksvm,
            reports=("C_", "n_support_"),
            widen="--Cs lo:hi:n",
        ),
        Method(
            "rankboost",
            "RankBoost",
            "boosted threshold stumps, their number chosen by --vali",
            "balance rule n_estimators learning_rate max_bins patience",
            single=("balance",),
            reports=("n_estimators_", "stopped_"),
            needs_vali=True,
        ),
    )
}


def takers(name: str) -> list[str]:
    """The methods that take an option."""
    return [method.name for method in METHODS.values() if name in method.takes.split()]


def method_of(options: Options) -> Method:
    """The method.

    Raises
    ------
    ValueError
        For a name that is none, for an option that is given and means nothing to it, and for several values of one that
        has to be one.
    """
    if options.method not in METHODS:
        problem, near = "{method} must be one of {0}; got {1!r}.", did_you_mean(options.method, METHODS)
        raise InputError(problem, ", ".join(METHODS), options.method, remedy=near, parameter="method")
    method = METHODS[options.method]
    if options.leave_pair_out and not method.leaves_pairs_out:
        raise InputError(
            "{leave_pair_out} holds out pairs without refitting, which --method {0} can do; {1} would need a refit for "
            "each pair. Judge it by {cv} or {vali}.",
            *(" and ".join(name for name, known in METHODS.items() if known.leaves_pairs_out), options.method),
            parameter="leave_pair_out",
        )
    if method.labels_only and (options.by_pairs or options.vali is not None):
        raise InputError(
            "--method {0} learns from the labels of TRAIN, and chooses by leaving out queries of it: preferences, "
            "{vali} and {event} mean nothing to it.",
            method.name,
            remedy="Judge it with {test}.",
            parameter="method",
        )
    if options.unscored is not None and not method.learns_unscored:
        raise InputError(
            "{unscored} means nothing to {0}: rows without labels are for --method {1}.",
            f"--method {method.name}",
            " and ".join(name for name, known in METHODS.items() if known.learns_unscored),
            parameter="unscored",
        )
    _check_columns(options, method)
    for name in options.changed():
        able = takers(name)
        if able and method.name not in able:
            raise InputError(
                flag_of(name) + " means nothing to {0}: it is an option of --method {1}, not of {2}.",
                *(f"--method {method.name}", " and ".join(able), method.name),
                parameter=name,
            )
        if name in method.single and isinstance(getattr(options, name), tuple):
            value = ",".join(map(str, getattr(options, name)))
            problem = flag_of(name) + " of --method {0} is one value; got {1!r}."
            raise InputError(problem, method.name, value, parameter=name)
    return method


def _check_columns(options: Options, method: Method) -> None:
    """Labels in several columns, and the methods that take them, belong together."""
    able = " and ".join(f"--method {name}" for name, known in METHODS.items() if known.ranks_columns)
    if options.utilities is None:
        if method.ranks_columns:
            problem = "{0} ranks the columns of a table: name those of its items by {utilities}, as in 'item_*'."
            raise InputError(problem, able, parameter="utilities")
        if options.items is not None:
            raise InputError("{items} are those of {0}.", able, parameter="items")
    elif not method.ranks_columns:
        problem = "{utilities} names a column for each item, which --method {0} has no use for: it is for {1}."
        raise InputError(problem, method.name, able, parameter="utilities")
    elif options.scale in ("minmax", "standard"):
        problem = "{scale} {0} scales inside a query, which is one row here."
        remedy = f"By the training rows: {{scale={options.scale}-all}}."
        raise InputError(problem, options.scale, remedy=remedy, parameter="scale")


def build(options: Options, **parameters: Any) -> Any:
    """The estimator that the options ask for; a wrong one is a ValueError that names it."""
    import rankrls

    method = method_of(options)
    given = {name: getattr(options, name) for name in method.takes.split()}
    given = {name: value for name, value in given.items() if value is not None} | parameters
    if method.adapt is not None:
        given = method.adapt(given)
    return getattr(rankrls, method.estimator)(**given)
