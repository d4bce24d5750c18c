"""An estimator in, held-out rankings out."""

from rankrls.model_selection.query_holdout import leave_query_out

__all__ = ["leave_query_out"]
