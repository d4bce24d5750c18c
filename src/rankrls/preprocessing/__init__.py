"""Scaling features inside each query, as scikit-learn transformers."""

from rankrls.preprocessing._scalers import QueryMinMaxScaler, QueryStandardScaler

__all__ = ["QueryMinMaxScaler", "QueryStandardScaler"]
