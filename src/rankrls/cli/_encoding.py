"""Tables with more than numbers: what was said of their columns, and what they are used as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rankrls.cli._options import Options
from rankrls.cli._report import Table
from rankrls.cli._together import TOLD

if TYPE_CHECKING:
    from rankrls.preprocessing import TableEncoder

__all__ = ["columns_table", "described_columns", "encoder_for"]


def encoder_for(options: Options) -> TableEncoder | None:
    """The encoder that the options ask for; None if they say nothing of columns."""
    told = {name: getattr(options, name) for name in TOLD if getattr(options, name) is not None}
    if not told:
        return None
    from rankrls.preprocessing import TableEncoder

    told.setdefault("columns", "named")
    if told["columns"] == "named":
        told.setdefault("impute", None)
    return TableEncoder(**told, sparse_output="auto" if options.scale == "none" else False)


def described_columns(encoder: TableEncoder | None) -> dict[str, Any]:
    """What each column is used as, for JSON and for the model's provenance."""
    if encoder is None:
        return {}
    return {"columns_used": [vars(use) for use in encoder.columns_]}


def columns_table(uses: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The same for people; no table if nothing was encoded."""
    cells = ("name", "kind", "reason", "n_missing", "n_features")
    rows = [[str(use.get(cell, "")) for cell in cells] for use in uses]
    return [] if not rows else [Table("Columns", ["", "used as", "because", "missing", "features"], rows, left=3)]
