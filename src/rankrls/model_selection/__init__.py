"""Held-out rankings of an estimator, and tests and estimates based on them."""

from rankrls.model_selection.nested import NestedEstimate, nested_estimate
from rankrls.model_selection.pair_holdout import PairHoldout, leave_pair_out, leave_rows_out
from rankrls.model_selection.permutation import PermutationTest, permutation_test
from rankrls.model_selection.query_holdout import leave_preference_out, leave_query_out

__all__ = [
    "NestedEstimate",
    "PairHoldout",
    "PermutationTest",
    "leave_pair_out",
    "leave_preference_out",
    "leave_query_out",
    "leave_rows_out",
    "nested_estimate",
    "permutation_test",
]
