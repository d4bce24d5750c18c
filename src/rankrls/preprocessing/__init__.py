"""Tables as numbers, and scaling features inside each query, as scikit-learn transformers."""

from rankrls._public import publish
from rankrls.preprocessing._deciding import ColumnUse
from rankrls.preprocessing._features import EncodedFeature
from rankrls.preprocessing._scalers import QueryMinMaxScaler, QueryStandardScaler
from rankrls.preprocessing._table_encoder import TableEncoder

__all__ = ["ColumnUse", "EncodedFeature", "QueryMinMaxScaler", "QueryStandardScaler", "TableEncoder"]

publish(__name__, globals())
