"""Features of pairs, against their formulas row by row."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls.preprocessing import pair_features


@pytest.mark.parametrize("length", [1.0, 1e-100, 1e100])
def test_columns_are_their_formulas(length):
    rng = np.random.default_rng(0)
    queries = length * rng.normal(size=(7, 5))
    items = rng.normal(size=(7, 5))
    found = pair_features(queries, items, parts=["cosine", "difference", "product"])
    for row, query, item in zip(found, queries / length, items, strict=True):
        u = query / np.linalg.norm(query) * 5**0.25
        v = item / np.linalg.norm(item) * 5**0.25
        cosine = query @ item / np.linalg.norm(query) / np.linalg.norm(item)
        np.testing.assert_allclose(row, [cosine, *np.abs(u - v), *u * v], atol=1e-12)


def test_one_query_is_that_of_all_items_and_zeros_stay_zeros():
    items = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, -1.0]])
    query = [0.5, 1.0]
    np.testing.assert_array_equal(pair_features(query, items), pair_features([query] * 3, items))
    assert not pair_features(query, items)[1].any()


def test_vectors_that_do_not_fit_are_refused():
    with Refusal("shape", parameter="query_vectors"):
        pair_features([[1.0, 2.0]], [[1.0, 2.0, 3.0]])
    with Refusal("finite", parameter="item_vectors", row=1):
        pair_features([1.0], [[1.0], [np.nan]])
    with Refusal("product", parameter="parts"):
        pair_features([1.0], [[1.0]], parts=["sum"])
