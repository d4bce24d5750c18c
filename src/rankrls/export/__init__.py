"""Export of models to formats of search engines and other runtimes."""

from rankrls.export._model import Exported
from rankrls.export.engines import (
    positive_offset,
    to_elasticsearch,
    to_elasticsearch_query,
    to_opensearch,
    to_solr,
)
from rankrls.export.json_scorer import to_json
from rankrls.export.onnx_graph import to_onnx
from rankrls.export.sql import to_sql

__all__ = [
    "Exported",
    "positive_offset",
    "to_elasticsearch",
    "to_elasticsearch_query",
    "to_json",
    "to_onnx",
    "to_opensearch",
    "to_solr",
    "to_sql",
]
