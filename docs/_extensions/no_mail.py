"""Measures such as ndcg@10 are no addresses: docutils makes links to mail of them, which this takes back."""

from __future__ import annotations

from typing import Any

from docutils import nodes


def _take_back(app: Any, doctree: nodes.document) -> None:
    for link in [*doctree.findall(nodes.reference)]:
        if link.get("refuri", "").startswith("mailto:"):
            link.replace_self(link.children)


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("doctree-read", _take_back)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
