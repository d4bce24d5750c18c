"""Held-out rankings of an estimator, and tests and estimates based on them."""

from rankrls.model_selection.held_out import (
    PairHoldout,
    leave_pair_out,
    leave_preference_out,
    leave_query_out,
    leave_rows_out,
)
from rankrls.model_selection.repeated_selection import (
    NestedEstimate,
    PermutationTest,
    nested_estimate,
    permutation_test,
)

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
