"""Scaling features inside each query, as scikit-learn transformers."""

from rankrls._public import publish
from rankrls.preprocessing._scalers import QueryMinMaxScaler, QueryStandardScaler

__all__ = ["QueryMinMaxScaler", "QueryStandardScaler"]

publish(__name__, globals())
