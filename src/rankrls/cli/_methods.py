"""The learners that ``fit`` and ``cv`` know by name: one row a method, with its estimator and the options it takes.

Nothing heavy is imported here: ``--help`` reads the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from rankrls._errors import InputError
from rankrls._nearest import did_you_mean
from rankrls.cli._options import Options


@dataclass(frozen=True)
class Method:
    """A learner; its line of help is in that of ``--method``.

    Attributes
    ----------
    estimator : str
        Its class.
    takes : str
        The options that are parameters of the estimator, between blanks.
    can : str
        The options of data that it can learn from and few others can, and what it can do or needs, between blanks.

        - validates_pairs: ``fit_pairs`` takes validation data.
        - needs_vali: it chooses by validation data only; without them it takes its options as they are.
        - keeps_best: an interrupted fit leaves the best model so far.
        - leaves_pairs_out: pairs can be held out of it without refitting.
        - labels_only: it learns from the labels of TRAIN alone, neither from preferences nor from validation data.
        - over_items: its functions are made of kernels of items.
        - all_items: without ``--n-basis`` every item is in its basis.
        - of_columns: it takes columns one by one, of features or of a kernel.
    """

    estimator: str
    takes: str
    can: str = ""

    def has(self, word: str) -> bool:
        """Whether it takes an option, learns from its data, or can do something."""
        return word in f"{self.takes} {self.can}".split()


_GRAPH = "ties balance regression_weight cv"
_KERNEL = "kernel gamma degree coef0"
_BASIS = "n_basis basis random_state"
_VOTES = ("winner", "loser", "left", "right", "preferred")
METHODS = {
    "rankrls": Method("RankRLSCV", f"alphas {_GRAPH} {_KERNEL} rule positive", "leaves_pairs_out"),
    "auto": Method("AutoRankRLS", "cv rule n_basis random_state within_query time_limit nested", "labels_only"),
    "cg": Method(
        "CGRankRLS",
        f"alphas {_GRAPH} rule selection max_iter tol patience random_state",
        "validates_pairs keeps_best",
    ),
    "sparse": Method("SparseRankRLSCV", f"alphas {_GRAPH} {_KERNEL} rule {_BASIS}", "leaves_pairs_out over_items"),
    "pursuit": Method("RankingPursuitCV", f"{_GRAPH} {_KERNEL} rule max_basis", "of_columns"),
    "greedy": Method("GreedyRankRLS", f"alphas {_GRAPH} rule max_features"),
    "transductive": Method(
        "TransductiveRankRLSCV",
        f"alphas balance regression_weight cv {_KERNEL} rule {_BASIS} penalty",
        "unscored labels_only",
    ),
    "co-rankrls": Method(
        "CoRankRLS", f"alphas {_GRAPH} {_KERNEL} rule mu n_views random_state", "unscored labels_only"
    ),
    "co-pursuit": Method(
        "CoRankingPursuitCV", f"{_GRAPH} {_KERNEL} rule max_basis nu", "unscored labels_only of_columns"
    ),
    "conditional": Method(
        "ConditionalRankRLSCV", f"alphas cv {_KERNEL} rule fit_intercept hold_out", "utilities items labels_only"
    ),
    "ranksvm": Method("RankSVMCV", f"Cs balance cv {_KERNEL} rule loss {_BASIS} max_iter tol", "all_items"),
    "rankboost": Method("RankBoost", "balance rule n_estimators learning_rate max_bins patience", "needs_vali"),
}


def able_to(word: str) -> list[str]:
    """The methods that take an option, learn from its data, or can do something."""
    return [name for name, method in METHODS.items() if method.has(word)]


def build(options: Options, **parameters: Any) -> Any:
    """The estimator that the options ask for, with checked parameters.

    Raises
    ------
    InputError
        For a name that is none, for an option that is given and means nothing to the method, and for values of its
        parameters that cannot be.
    """
    import rankrls
    from rankrls.models.inputs.parameters import check_parameters

    method = METHODS.get(options.method)
    if method is None:
        problem, near = "{method} must be one of {0}; got {1!r}.", did_you_mean(options.method, METHODS)
        raise InputError(problem, ", ".join(METHODS), options.method, remedy=near, parameter="method")
    _check_traits(options, method)
    for name in options.changed():
        able = able_to(name)
        if able and options.method not in able:
            problem = f"{{{name}}} means nothing to {{0}}: it is an option of --method {{1}}, not of {{2}}."
            whose = f"--method {options.method}"
            raise InputError(problem, whose, " and ".join(able), options.method, parameter=name)
    given = {name: value for name in method.takes.split() if (value := getattr(options, name)) is not None}
    _check_kernel(method, given)
    if method.has("of_columns"):
        given["dictionary"] = "features" if given["kernel"] == "linear" else "kernel"
    out = getattr(rankrls, method.estimator)(**given, **parameters)
    getattr(out, "_check", partial(check_parameters, out))()
    return out


def _check_kernel(method: Method, given: dict[str, Any]) -> None:
    """Refuse a linear kernel if it has no basis, and options of a basis if there is none."""
    linear = given.get("kernel") == "linear"
    if method.has("over_items") and linear:
        raise InputError(
            "{method=sparse} expands over items: give a kernel other than linear, as in {kernel=rbf}. For a linear "
            "model the default method is exact and faster.",
            parameter="kernel",
        )
    told = next((name for name in _BASIS.split() if name in given), None)
    if not method.has("all_items") or told is None or ("n_basis" in given and not linear):
        return
    problem = f"{{{told}}} needs {{n_basis}}: without it every item is in the basis."
    if linear:
        problem = f"{{{told}}} needs a kernel other than linear, as in {{kernel=rbf}}: weights have no basis."
    raise InputError(problem, parameter=told)


def _check_traits(options: Options, method: Method) -> None:
    """Refuse what the method cannot do."""
    if options.leave_pair_out and not method.has("leaves_pairs_out"):
        raise InputError(
            "{leave_pair_out} holds out pairs without refitting, which --method {0} can do; {1} would need a refit for "
            "each pair. Judge it by {cv} or {vali}.",
            *(" and ".join(able_to("leaves_pairs_out")), options.method),
            parameter="leave_pair_out",
        )
    if options.leave_pair_out and options.event is not None and options.method != "rankrls":
        raise InputError("{leave_pair_out} of {event} is for --method rankrls; got {0!r}.", options.method)
    if method.has("utilities") and options.utilities is None:
        problem = "--method {0} ranks the columns of a table: name those of its items by {utilities}, as in 'item_*'."
        raise InputError(problem, options.method, parameter="utilities")
    if options.utilities is not None and options.scale in ("minmax", "standard"):
        problem = "{scale} {0} scales inside a query, which is one row here."
        remedy = f"By the training rows: {{scale={options.scale}-all}}."
        raise InputError(problem, options.scale, remedy=remedy, parameter="scale")
    if method.has("labels_only") and (options.by_pairs or options.vali is not None):
        raise InputError(
            "--method {0} learns from the labels of TRAIN, and chooses by leaving out queries of it: preferences, "
            "{vali} and {event} mean nothing to it.",
            options.method,
            remedy="Judge it with {test}.",
            parameter="method",
        )
    if not options.by_pairs:
        if (
            method.has("needs_vali")
            and options.vali is None
            and (options.patience or options.rule not in (None, "best"))
        ):
            told = "rule" if options.patience is None else "patience"
            raise InputError(f"{{{told}}} needs validation data.", remedy="Give {vali}.", parameter=told)
        return
    if options.event is not None and options.group is not None and options.everything:
        raise InputError("{group} means nothing with {event} and {everything}.", parameter="group")
    pairs = next(f"{{{name}}}" for name in ("pairs", *_VOTES, "event") if getattr(options, name) is not None)
    validated = options.vali is not None or options.vali_pairs is not None
    if validated and not method.has("validates_pairs"):
        how = (
            "takes {0} without validation data" if method.has("needs_vali") else "chooses among {0} by leaving some out"
        )
        problem = f"--method {{0}} {how.format(pairs)}; validation data are for --method {{1}}."
        raise InputError(problem, options.method, *able_to("validates_pairs"), parameter="pairs")
    needy = next((name for name in options.changed() if name in ("patience", "rule")), None)
    if needy is not None and method.has("needs_vali"):
        problem = f"{{{needy}}} needs validation data, and --method {{0}} takes {pairs} without."
        raise InputError(problem, options.method, parameter=needy)
