"""Scikit-learn transformers that encode tables as numbers and scale features inside each query."""

from rankrls.preprocessing._pairs import pair_features
from rankrls.preprocessing._scalers import LogScaler, QueryMinMaxScaler, QueryStandardScaler
from rankrls.preprocessing._table_encoder import ColumnUse, EncodedFeature, TableEncoder

__all__ = [
    "ColumnUse",
    "EncodedFeature",
    "LogScaler",
    "QueryMinMaxScaler",
    "QueryStandardScaler",
    "TableEncoder",
    "pair_features",
]
