"""Models in the formats that search engines and other runtimes read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankrls.export._linear import Exported as Exported
    from rankrls.export._linear import positive_offset as positive_offset
    from rankrls.export.engines import to_elasticsearch as to_elasticsearch
    from rankrls.export.engines import to_opensearch as to_opensearch
    from rankrls.export.engines import to_solr as to_solr
    from rankrls.export.onnx_graph import to_onnx as to_onnx

# Imported on first use, so that the command line can list the formats without waiting for scientific libraries.
ENGINES = {"solr": "engines", "elasticsearch": "engines", "opensearch": "engines", "onnx": "onnx_graph"}
"""Each format, and the module with its function ``to_FORMAT``."""

_HOMES = {f"to_{name}": f"{__name__}.{module}" for name, module in ENGINES.items()}
_HOMES |= dict.fromkeys(("Exported", "positive_offset"), f"{__name__}._linear")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
