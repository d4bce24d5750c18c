"""Models in the formats that search engines and other runtimes read: one engine a module."""

from rankrls._public import publish
from rankrls.export._exported import Exported
from rankrls.export._linear import positive_offset
from rankrls.export.elasticsearch import to_elasticsearch, to_opensearch
from rankrls.export.onnx_graph import to_onnx
from rankrls.export.plain_json import to_json
from rankrls.export.solr import to_solr
from rankrls.export.vespa import to_vespa

__all__ = [
    "Exported",
    "positive_offset",
    "to_elasticsearch",
    "to_json",
    "to_onnx",
    "to_opensearch",
    "to_solr",
    "to_vespa",
]

publish(__name__, globals())
