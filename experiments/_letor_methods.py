"""The methods of the LETOR experiment: one family a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _letor_boosting import FAMILY as RANKBOOST
from _letor_data import Collection, Fold
from _letor_protocol import Fitted, Method
from _letor_rankrls import FAMILY as RANKRLS
from _letor_ranksvm import FAMILY as RANKSVM
from _letor_sparse import FAMILY as SPARSE
from _letor_trees import FAMILIES as TREES

__all__ = ["FAMILIES", "published"]

FAMILIES = {family.name: family for family in (RANKRLS, SPARSE, RANKSVM, RANKBOOST, *TREES)}


@dataclass(frozen=True)
class Published(Method):
    """The benchmark's own predictions: one score a line, in the order of the test file."""

    folder: Path = Path()

    def fit(self, fold: Fold) -> Fitted:
        (path,) = self.folder.glob(f"{fold.number}_Prediction*")
        scores = np.loadtxt(path)
        if scores.shape != fold.test.y.shape:
            raise ValueError(f"{path} has {len(scores)} scores; fold {fold.number} has {len(fold.test.y)} documents.")
        setting = path.name.split("_")[-1]
        return Fitted(scores, {"file": setting}, "by the benchmark", np.nan, np.nan, np.nan)


def published(collection: Collection) -> tuple[Method, ...]:
    """Methods whose predictions lie beside the collection's folds, in ``official_results/NAME``."""
    out = []
    for name in ("RankSVM", "RankBoost"):
        folder = collection.folder / "official_results" / name
        if all(len(list(folder.glob(f"{number}_Prediction*"))) == 1 for number in collection.folds):
            what = f"the predictions of {name} that LETOR published"
            out.append(Published(f"LETOR {name}", what, paper=name, folder=folder))
    return tuple(out)
