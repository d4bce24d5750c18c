"""Label ranking on scikit-learn's own sets, as the literature makes them: ``python experiments/label_ranking.py``.

Type A (Cheng, Huehn and Huellermeier 2009): naive Bayes is trained on all of a classification set, and an instance
ranks the classes by their probabilities. Type B: some columns of a set are taken away, standardised, and ranked in each
row. Kendall's tau of held-out instances, the same folds for all methods; whatever a method chooses it chooses on the
training part.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.stats import wilcoxon
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from rankrls import ConditionalRankRLSCV
from rankrls.metrics import kendall_tau

GAMMAS = (0.03, 0.1, 0.3, 1.0)  # over the number of features
NEIGHBOURS = (3, 5, 10, 20, 40)


def problems() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Features and rankings, as d - position."""
    made = {}
    for name, load in (("iris", datasets.load_iris), ("wine", datasets.load_wine), ("digits", datasets.load_digits)):
        X, y = (part[:500] for part in load(return_X_y=True))
        made[name] = X, _ranks(_log_probabilities(X, y))
    X = datasets.load_diabetes().data
    made["diabetes, six serum values"] = X[:, :4], _ranks(StandardScaler().fit_transform(X[:, 4:]))
    X, Y = datasets.load_linnerud(return_X_y=True)
    made["linnerud"] = X, _ranks(StandardScaler().fit_transform(Y))
    return made


def _log_probabilities(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    Z = StandardScaler().fit_transform(X)
    return GaussianNB(var_smoothing=1e-2).fit(Z, y).predict_log_proba(Z)


def _ranks(utilities: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(utilities, axis=1, kind="stable"), axis=1).astype(float)


def conditional(kernel: str):
    """One of ours; gamma by the held-out tau that comes with the fit."""

    def scores(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
        gammas = [None] if kernel == "linear" else [g / X.shape[1] for g in GAMMAS]
        models = [
            ConditionalRankRLSCV(kernel=kernel, gamma=gamma, fit_intercept=True, scoring="tau").fit(X, Y)
            for gamma in gammas
        ]
        return max(models, key=lambda model: model.best_score_).predict(new)

    return scores


def ridge(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Ridge regression of every label's rank, each with an alpha of its own."""
    return RidgeCV(np.geomspace(1e-4, 1e4, 21), alpha_per_target=True).fit(X, Y).predict(new)


def kernel_ridge(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Gaussian kernel ridge regression of all ranks, by five folds and squared error."""
    grid = {"alpha": np.geomspace(1e-4, 10, 11), "gamma": [g / X.shape[1] for g in GAMMAS]}
    level = Y.mean(axis=0)
    return level + GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5).fit(X, Y - level).predict(new)


def neighbours(X: np.ndarray, Y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The mean rank among the nearest instances (Borda), their number by leave-one-out."""
    near = NearestNeighbors(n_neighbors=min(max(NEIGHBOURS), len(X) - 1)).fit(X)
    others = near.kneighbors(return_distance=False)
    taus = {k: tau(Y, Y[others[:, :k]].mean(axis=1)).mean() for k in NEIGHBOURS if k < len(X)}
    k = max(taus, key=taus.get)
    return Y[near.kneighbors(new, return_distance=False)[:, :k]].mean(axis=1)


METHODS = {
    "linear": conditional("linear"),
    "Gaussian": conditional("rbf"),
    "per-label ridge": ridge,
    "kernel ridge": kernel_ridge,
    "neighbours, Borda": neighbours,
}


def tau(Y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Kendall's tau of each row; rows of which all scores are tied count 0."""
    q, d = Y.shape
    return kendall_tau(Y.ravel(), scores.ravel(), qid=np.repeat(np.arange(q), d), empty=0.0, per_query=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="times five folds")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"{'':28}" + "".join(f"{name:>20}" for name in METHODS))
    for name, (X, Y) in problems().items():
        values = {method: np.zeros(len(Y)) for method in METHODS}
        for train, test in RepeatedKFold(n_splits=5, n_repeats=options.repeats, random_state=0).split(X):
            scaler = StandardScaler().fit(X[train])
            A, B = scaler.transform(X[train]), scaler.transform(X[test])
            for method, scores in METHODS.items():
                values[method][test] += tau(Y[test], scores(A, Y[train], B)) / options.repeats
        print(f"{name + f', {len(Y)} x {Y.shape[1]}':28}" + "".join(f"{v.mean():20.4f}" for v in values.values()))
        ours = values["Gaussian"]
        for rival in ("per-label ridge", "kernel ridge", "neighbours, Borda"):
            p = wilcoxon(ours, values[rival]).pvalue if (ours != values[rival]).any() else 1.0
            print(f"    Gaussian - {rival}: {ours.mean() - values[rival].mean():+.4f}, p = {p:.2g}")


if __name__ == "__main__":
    main()
