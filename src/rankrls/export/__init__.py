"""Models in the formats that search engines and other runtimes read: one engine a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankrls._public import on_first_use

if TYPE_CHECKING:
    from rankrls.export._exported import Exported as Exported
    from rankrls.export._linear import positive_offset as positive_offset
    from rankrls.export.elasticsearch import to_elasticsearch as to_elasticsearch
    from rankrls.export.elasticsearch import to_opensearch as to_opensearch
    from rankrls.export.onnx_graph import to_onnx as to_onnx
    from rankrls.export.plain_json import to_json as to_json
    from rankrls.export.solr import to_solr as to_solr
    from rankrls.export.vespa import to_vespa as to_vespa

# Imported on first use, so that the command line can list the formats without waiting for scientific libraries.
ENGINES = {
    "solr": "solr",
    "elasticsearch": "elasticsearch",
    "opensearch": "elasticsearch",
    "vespa": "vespa",
    "onnx": "onnx_graph",
    "json": "plain_json",
}
"""Each format, and the module with its function ``to_FORMAT``."""

_HOMES = {f"to_{name}": f"{__name__}.{module}" for name, module in ENGINES.items()}
_HOMES |= {"Exported": f"{__name__}._exported", "positive_offset": f"{__name__}._linear"}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = on_first_use(__name__, _HOMES)
