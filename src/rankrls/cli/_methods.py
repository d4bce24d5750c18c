"""The learners that ``fit`` and ``cv`` know by name: one row a method, with its estimator and its own options.

Nothing heavy is imported here: ``--help`` reads the table.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options
from rankrls.cli._signs import positive_words

if TYPE_CHECKING:
    from rankrls.cli._models import Learning

__all__ = ["METHODS", "Method", "MethodName", "MethodOption", "method_of", "with_method_options"]


@dataclass(frozen=True)
class MethodOption:
    """An option of some methods only. The estimator's own default holds where it is not given.

    Attributes
    ----------
    name : str
        The estimator's parameter; the flag is ``--`` and the name with dashes.
    kind : type
        int, float, str or bool.
    metavar, help : str
    choices : tuple of str
        The words that are allowed, where only some are.
    least, most : float or None
        The smallest and the largest number allowed.
    """

    name: str
    kind: type
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    def check(self, value: Any) -> None:
        """Refuse a value that cannot be."""
        if self.choices:
            _options.check_choice(self.flag, value, self.choices)
        if self.kind is float and not math.isfinite(value):
            raise ValueError(f"{self.flag} needs a finite number; got {value!r}.")
        if self.least is not None and value < self.least:
            raise ValueError(f"{self.flag} must be at least {self.least:g}; got {value!r}.")
        if self.most is not None and value > self.most:
            raise ValueError(f"{self.flag} must be at most {self.most:.12g}; got {value!r}.")


@dataclass(frozen=True)
class Method:
    """A learner.

    Attributes
    ----------
    name, summary : str
        What ``--method`` calls it, and what its help says.
    build : callable
        The estimator, from the shared options and those of ``options`` that were given.
    takes : tuple of str
        The shared options (fields of ``Learning``) that mean something to it; another one that is changed from its
        default is refused.
    options : tuple of MethodOption
    reports : tuple of str
        Fitted attributes that say what was chosen, beside ``best_params_``.
    widen : str
        The option that widens the grid which it chooses from.
    learns_pairs : bool
        Whether it has ``fit_pairs``.
    validates_pairs : bool
        Whether ``fit_pairs`` takes validation data.
    needs_vali : bool
        Whether it chooses by validation data only; without them it takes its options as they are.
    keeps_best : bool
        Whether an interrupted fit leaves the best model so far.
    one : callable or None
        The estimator of one candidate, from its parameters, where pairs can be held out of it without refitting.
    """

    name: str
    summary: str
    build: Callable[[Learning, dict[str, Any]], Any]
    takes: tuple[str, ...]
    options: tuple[MethodOption, ...] = ()
    reports: tuple[str, ...] = ("alpha_",)
    widen: str = "--alphas lo:hi:n"
    learns_pairs: bool = False
    validates_pairs: bool = False
    needs_vali: bool = False
    keeps_best: bool = False
    one: Callable[..., Any] | None = None

    @property
    def flags(self) -> dict[str, str]:
        """The estimator's parameters that are options of this method, as they are written on the command line."""
        return {option.name: option.flag for option in self.options}


def _rankrls(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import RankRLSCV

    if "positive" in given:  # columns are known when the data are read
        if learning.parsed("kernel") != "linear":
            raise ValueError("--positive is about the weights of features: it needs --kernel linear.")
        given = {**given, "positive": positive_words(given["positive"])}
    return RankRLSCV(**_searched(learning), **given)


def _sparse(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import SparseRankRLSCV

    searched = _searched(learning)
    if searched["kernel"] == "linear":
        raise ValueError(
            "--method sparse expands over items: give a kernel other than linear, as in --kernel rbf. For a linear "
            "model the default method is exact and faster."
        )
    return SparseRankRLSCV(**searched, **given)


def _one_rankrls(**chosen: Any) -> Any:
    from rankrls.models import RankRLS

    return RankRLS(**chosen)


def _one_sparse(**chosen: Any) -> Any:
    from rankrls.models import SparseRankRLS

    return SparseRankRLS(**chosen)


def _searched(learning: Learning) -> dict[str, Any]:
    """What the estimators that choose by exact cross-validation share."""
    names = ("alphas", "rule", "kernel", "gamma", "degree", "coef0", "ties", "balance")
    return {
        **{name: learning.parsed(name) for name in names},
        "cv": learning.folds,
        "scoring": learning.measure(),
        "regression_weight": learning.regression_weight,
    }


def _rankboost(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import RankBoost

    return RankBoost(balance=learning.parsed_one("balance"), scoring=learning.measure(), **given)


def _cg(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import CGRankRLS

    return CGRankRLS(
        learning.parsed("alphas"),
        cv=learning.folds,
        scoring=learning.measure(),
        ties=learning.parsed_one("ties"),
        balance=learning.parsed_one("balance"),
        regression_weight=learning.regression_weight,
        **{"random_state": 0, **given},  # what is held out: the same command gives the same model
    )


def _pursuit(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import RankingPursuitCV

    searched = _searched(learning)
    del searched["alphas"]
    dictionary = "features" if searched["kernel"] == "linear" else "kernel"
    return RankingPursuitCV(dictionary=dictionary, **searched, **given)


def _ranksvm(learning: Learning, given: dict[str, Any]) -> Any:
    from rankrls.models import RankSVMCV

    of_basis = [option.flag for option in (_N_BASIS, _BASIS, _SEED) if option.name in given]
    if of_basis and learning.parsed("kernel") == "linear":
        raise ValueError(f"{of_basis[0]} needs a kernel other than linear, as in --kernel rbf: weights have no basis.")
    if of_basis and _N_BASIS.name not in given:
        raise ValueError(f"{of_basis[0]} needs {_N_BASIS.flag}: without it every item is in the basis.")
    return RankSVMCV(
        _options.parse_alphas(given.pop("Cs", "auto"), "--Cs"),
        cv=learning.folds,
        scoring=learning.measure(),
        rule=learning.parsed("rule"),
        **{name: learning.parsed(name) for name in ("kernel", "gamma", "degree", "coef0", "balance")},
        **given,
    )


_GRAPH = ("alphas", "ties", "balance", "regression_weight", "folds")
_SEED = MethodOption("random_state", int, "SEED", "seed of random draws; 0 by default.", least=0, most=2**32 - 1)
_PATIENCE = MethodOption("patience", int, "N", "stop when nothing better was found for so many steps.", least=1)
_BASIS = MethodOption(
    "basis",
    str,
    "HOW",
    "random rows (default), centres of k-means (kmeans), or rows by pursuit.",
    choices=("random", "kmeans", "pursuit"),
)
_MAX_ITER = MethodOption("max_iter", int, "N", "iterations at most; by default 500, for ranksvm 100.", least=1)
_TOL = MethodOption(
    "tol", float, "T", "stop at this precision, relative: cg at a residual, ranksvm at a gap to the minimum.", least=0
)
_N_BASIS = MethodOption("n_basis", int, "R", "items in the basis; by default 500, for ranksvm all.", least=1)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "rankrls",
            "exact, by one factorisation",
            _rankrls,
            (*_GRAPH, "kernel", "gamma", "degree", "coef0", "rule"),
            (
                MethodOption(
                    "positive",
                    str,
                    "LIST",
                    "no weight is negative: all, or of features a,b*,c as TRAIN names or numbers them.",
                ),
            ),
            learns_pairs=True,
            one=_one_rankrls,
        ),
        Method(
            "cg",
            "conjugate gradients, for large sparse data",
            _cg,
            _GRAPH,
            (
                MethodOption(
                    "selection",
                    str,
                    "WORD",
                    "tikhonov (alpha), early_stopping (iterations) or hybrid (both).",
                    choices=("tikhonov", "early_stopping", "hybrid"),
                ),
                _MAX_ITER,
                _TOL,
                _PATIENCE,
                _SEED,
            ),
            reports=("alpha_", "n_iter_"),
            learns_pairs=True,
            validates_pairs=True,
            keeps_best=True,
        ),
        Method(
            "sparse",
            "RankRLS over a basis of few items, for kernels on very many rows",
            _sparse,
            (*_GRAPH, "kernel", "gamma", "degree", "coef0", "rule"),
            (
                _N_BASIS,
                _BASIS,
                _SEED,
            ),
            learns_pairs=True,
            one=_one_sparse,
        ),
        Method(
            "pursuit",
            "few features, or with --kernel few items, taken greedily",
            _pursuit,
            ("ties", "balance", "regression_weight", "folds", "kernel", "gamma", "degree", "coef0", "rule"),
            (MethodOption("max_basis", int, "P", "terms at most, 50 by default; fewer are chosen.", least=1),),
            reports=(),
            widen="--max-basis P",
            learns_pairs=True,
        ),
        Method(
            "ranksvm",
            "pairwise hinge losses, C chosen by refits",
            _ranksvm,
            ("balance", "kernel", "gamma", "degree", "coef0", "rule", "folds"),
            (
                MethodOption("Cs", str, "LIST", "weights of the loss to choose from: auto, a,b,c or lo:hi:n."),
                MethodOption(
                    "loss", str, "NAME", "squared_hinge (default) or hinge.", choices=("squared_hinge", "hinge")
                ),
                _N_BASIS,
                _BASIS,
                _SEED,
                _MAX_ITER,
                _TOL,
            ),
            reports=("C_", "n_support_"),
            widen="--Cs lo:hi:n",
            learns_pairs=True,
        ),
        Method(
            "rankboost",
            "boosted threshold stumps, their number chosen by --vali",
            _rankboost,
            ("balance",),
            (
                MethodOption("n_estimators", int, "N", "stumps at most, 300 by default.", least=1),
                MethodOption("learning_rate", float, "R", "what a stump's weight is multiplied by, 0 to 1."),
                MethodOption(
                    "max_bins", int, "N", "distinct thresholds of a feature, at most; 256 by default.", least=2
                ),
                _PATIENCE,
            ),
            reports=("n_estimators_", "stopped_"),
            learns_pairs=True,
            needs_vali=True,
        ),
    )
}

MethodName = Annotated[
    str,
    typer.Option("--method", metavar="NAME", help="; ".join(f"{m.name}: {m.summary}" for m in METHODS.values()) + "."),
]


def method_of(name: str, given: dict[str, Any]) -> tuple[Method, dict[str, Any]]:
    """The method, and the options of its own that were given, checked.

    Raises
    ------
    ValueError
        For a name that is none, for a value that cannot be, and for an option of another method.
    """
    method = METHODS[_options.check_choice("--method", name, tuple(METHODS))]
    given = {key: value for key, value in given.items() if value is not None}
    own = {option.name: option for option in method.options}
    for key, value in given.items():
        if key not in own:
            others = [m.name for m in METHODS.values() if any(o.name == key for o in m.options)]
            raise ValueError(
                f"--{key.replace('_', '-')} is an option of --method {' and '.join(others)}, not of {name}."
            )
        own[key].check(value)
    return method, given


def with_method_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of all methods; it gets them as keywords of its ``**method_options``."""
    signature = inspect.signature(command, eval_str=True)
    known: dict[str, tuple[MethodOption, list[str]]] = {}
    for method in METHODS.values():
        for option in method.options:
            known.setdefault(option.name, (option, []))[1].append(method.name)
    extra = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                option.kind | None,
                typer.Option(option.flag, metavar=option.metavar, help=f"{', '.join(methods)}: {option.help}"),
            ],
        )
        for option, methods in known.values()
    ]
    named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:
        command(**arguments)

    whole = signature.replace(parameters=[*named, *extra])
    wrapper.__signature__ = whole  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in whole.parameters.values()}
    return wrapper
