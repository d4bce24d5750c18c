"""Scalers fitted to data sets against scikit-learn's on all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from rankrls.streaming.scaled import fit_scaler
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.test_fit_dataset import CUTS

LEARNED = ("mean_", "var_", "scale_", "data_min_", "data_max_", "max_abs_", "n_samples_seen_", "n_features_in_")
SCALERS = {
    "standard": StandardScaler(),
    "centred": StandardScaler(with_std=False),
    "ends": MinMaxScaler(),
    "most": MaxAbsScaler(),
}


@pytest.mark.parametrize("name", [*SCALERS, "sparse"])
@pytest.mark.parametrize("cuts", CUTS)
def test_all_rows_are_learned_from(cuts, name):
    scaler = SCALERS.get(name, StandardScaler(with_mean=False))
    X, y, qid, w = example(3, csr=name == "sparse", offset=0.0 if name == "sparse" else 1e6)
    if name != "sparse":
        X[:, 2] = 7.0
    found = fit_scaler(scaler, ArrayDataset(X, y, qid, w, CUTS[cuts](len(y))))
    expected = type(scaler)(**scaler.get_params()).fit(X)
    for attribute in LEARNED:
        if getattr(expected, attribute, None) is not None:
            np.testing.assert_allclose(getattr(found.scaler, attribute), getattr(expected, attribute), rtol=1e-9)
    part = found.read(found.parts[-1])
    dense = lambda values: values.toarray() if hasattr(values, "toarray") else values
    np.testing.assert_allclose(dense(part.X), dense(expected.transform(X[-len(part.y) :])), rtol=1e-9, atol=1e-8)


def test_engines_and_checkpoints_give_the_same_bits(tmp_path):
    X, y, qid, w = example(3)
    data = ArrayDataset(X, y, qid, w, (4, 12, 30, 40, 50))
    expected = fit_scaler(StandardScaler(), data).scaler.scale_.tobytes()
    with ThreadPoolExecutor(2) as pool:
        assert fit_scaler(StandardScaler(), data, executor=pool).scaler.scale_.tobytes() == expected
    for _ in range(2):
        assert fit_scaler(StandardScaler(), data, checkpoint=tmp_path).scaler.scale_.tobytes() == expected
