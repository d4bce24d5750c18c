"""How optimistic the score of a chosen alpha is in small studies, and whether the nested estimate mends it.

    python -m comparisons.small_studies --studies 100

Each study has forty of the 569 patients of scikit-learn's breast cancer data, with the 495 features of the tutorial "A
small clinical study"; the other patients give the true value (the AUC). Printed are the means over the studies and
their standard errors; differences are paired.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_pair_out, nested_estimate

SIZE, FIXED = 40, 100.0


def study(seed: int) -> dict[str, float]:
    """The estimates of one study, and the values that they estimate."""
    X, benign = load_breast_cancer(return_X_y=True)
    ill = 1 - benign
    inside = np.random.default_rng(seed).permutation(len(ill)) < SIZE
    steps = [StandardScaler(), PolynomialFeatures(2, include_bias=False), StandardScaler()]
    expand = make_pipeline(*steps).fit(X[inside])
    Z, rest = expand.transform(X[inside]), expand.transform(X[~inside])
    chosen = RankRLSCV(scoring="pair_accuracy").fit(Z, ill[inside])
    fixed = RankRLS(FIXED).fit(Z, ill[inside])
    return {
        "score of the chosen alpha": chosen.best_score_,
        "nested estimate": float(nested_estimate(chosen, Z, ill[inside]).score),
        "true value": float(roc_auc_score(ill[~inside], chosen.predict(rest))),
        "fixed alpha, leave-pair-out": float(leave_pair_out(fixed, Z, ill[inside]).score),
        "fixed alpha, true value": float(roc_auc_score(ill[~inside], fixed.predict(rest))),
    }


def shown(values: np.ndarray) -> str:
    return f"{values.mean():+.3f} ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}"


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    found = [study(seed) for seed in range(parser.parse_args().studies)]
    table = {name: np.array([each[name] for each in found]) for name in found[0]}
    for name, values in table.items():
        truth = table["fixed alpha, true value" if name.startswith("fixed") else "true value"]
        less = "" if values is truth else f"   minus the true value {shown(values - truth)}"
        print(f"{name:28s}{shown(values)}{less}")


if __name__ == "__main__":
    main()
