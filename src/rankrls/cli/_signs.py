"""``--positive``: which weights must not be negative."""

from __future__ import annotations

from typing import Any

from rankrls.cli import _options

__all__ = ["positive_columns", "positive_words"]


def positive_words(text: str) -> bool | tuple[str, ...]:
    """True for all features, or the names, patterns and numbers of some."""
    return True if text.strip() == "all" else _options.parse_names("--positive", text)


def positive_columns(words: bool | tuple[str, ...], table: Any) -> bool | dict[int, int]:
    """Columns of a table's X with their sign, from names and patterns, or numbers as its file counts.

    A mapping, because a list of two numbers for two features may also be read as their signs.

    Raises
    ------
    ValueError
        For a feature that the file does not have, and for one that is numbered twice.
    """
    if isinstance(words, bool):
        return words
    from rankrls.io.tables.columns import matching

    names = {name: column for column, name in enumerate(getattr(table, "feature_names", None) or ())}
    out: dict[int, int] = {}
    for word in words:
        columns = [names[name] for name in matching(word, [*names])]
        if not columns:
            columns = [_numbered(word, table, bool(names))]
            if columns[0] in out:
                raise ValueError(f"--positive names feature {word!r} twice.")
        out |= dict.fromkeys(columns, 1)
    return out


def _numbered(word: str, table: Any, has_names: bool) -> int:
    if not has_names and word.isdecimal():
        column = int(word) - table.first_feature
        if 0 <= column < table.n_features:
            return column
    if has_names:
        raise ValueError(f"--positive names feature {word!r}, which {table.path} does not have.")
    last = table.first_feature + table.n_features - 1
    raise ValueError(
        f"--positive names feature {word!r}, but {table.path} has the features {table.first_feature} to {last}."
    )
