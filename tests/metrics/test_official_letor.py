"""The official LETOR predictions, scored with our measures, give the official figures."""

import re

import numpy as np
import pytest

from rankrls.metrics import evaluate

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize("method", ["RankSVM", "RankBoost"])
@pytest.mark.parametrize("fold", range(1, 6))
def test_official_figures(data_dir, method, fold):
    folder = data_dir / "ohsumed_letor1"
    rows = [line.split()[:2] for line in (folder / f"Fold{fold}" / "testset.txt").read_text().splitlines()]
    y, qid = [int(label) for label, _ in rows], [q for _, q in rows]
    (predictions,) = (folder / "official_results" / method).glob(f"{fold}_Prediction*")
    scores = np.loadtxt(predictions)
    perf = (folder / "official_results" / method / f"{fold}_Perf.txt").read_text()
    official = {
        name: np.array(re.search(rf"{name}:\s*(.*)", perf).group(1).split(), dtype=float)
        for name in ("precision", "MAP", "NDCG")
    }
    assert len(official["precision"]) == len(official["NDCG"]) == 16
    names = [f"{name}@{k}" for name in ("p", "ndcg") for k in range(1, 17)]
    found = list(evaluate(y, scores, qid=qid, measures=[*names, "map"]).values())
    np.testing.assert_allclose(found, [*official["precision"], *official["NDCG"], official["MAP"][0]], atol=1e-9)
