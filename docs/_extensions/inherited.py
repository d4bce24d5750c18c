"""Parameters and attributes that are described "as in" another class or method, with that description in full."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import rankrls

AS_IN = re.compile(
    r"(?P<names>\w[\w, ]*) : as (?:in|for) :(?:meth|class|func):`~?(?:rankrls\.)?(?P<target>[\w.]+)`(?P<rest>.*)"
)
SAME = re.compile(r"(?:, or a tuple .*)?")  # what may follow and concerns every name
DESCRIBED = ("Parameters", "Attributes")
Entry = tuple[str, tuple[str, ...]]


def found(target: str, owners: tuple[Any, ...]) -> Any:
    """The object of a name as a docstring writes it, or None."""
    for owner in owners:
        value: Any = owner
        for part in target.split("."):
            value = getattr(value, part, None)
        if value is not None:
            return value
    return None


def joined(text: str) -> list[str]:
    """The lines of a docstring: names of one description on one line, and a reference to another beside them."""
    text = re.sub(r"(?m)^(\w[\w, ]*_?)\n *: ", r"\1 : ", text)
    while (longer := re.sub(r"(?m)^(\w+(?:, \w+)*),\n(?=\w[\w, ]*(?: : |,$))", r"\1, ", text)) != text:
        text = longer
    return re.sub(r"(?m) : as (in|for)\n +:", r" : as \1 :", text).split("\n")


def owners_of(value: Any, parent: Any) -> tuple[Any, ...]:
    """Where the names in its docstring are looked for."""
    module = sys.modules.get(getattr(value, "__module__", ""), rankrls)
    return (parent, rankrls, module)


@cache
def entries(value: Any, parent: Any) -> dict[str, Entry]:
    """Type and description of each parameter and attribute of a class or method."""
    lines = [*expanded(joined(inspect.getdoc(value) or ""), owners_of(value, parent))]
    described = dict[str, Entry]()
    section = ""
    names = list[str]()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-+", following):
            section = line
            names = []
        elif section in DESCRIBED and (head := re.fullmatch(r"(\w[\w, ]*) : (.*)", line)):
            names = head[1].split(", ")
            described |= dict.fromkeys(names, (head[2], ()))
        elif section in DESCRIBED and (line.startswith("    ") or not line):
            for name in names:
                kind, text = described[name]
                described[name] = (kind, (*text, line))
    ends = {
        name: max((n for n, line in enumerate(text, 1) if line), default=0) for name, (_, text) in described.items()
    }
    return {name: (kind, text[: ends[name]]) for name, (kind, text) in described.items()}


def expanded(lines: list[str], owners: tuple[Any, ...]) -> Iterator[str]:
    """The lines of a docstring with the other descriptions in their places."""
    for line in lines:
        referred = AS_IN.fullmatch(line)
        value = found(referred["target"], owners) if referred and SAME.fullmatch(referred["rest"]) else None
        if value is None:
            yield line
            continue
        known = entries(value, found(referred["target"].rpartition(".")[0], owners))
        names = referred["names"].split(", ")
        if left := [name for name in names if name not in known]:
            yield line.replace(referred["names"], ", ".join(left), 1)
        for name in names:
            if name in known:
                kind, text = known[name]
                yield f"{name} : {kind}{referred['rest']}"
                yield from text


def _process(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    parent = found(name.removeprefix("rankrls.").rpartition(".")[0], (rankrls,))
    lines[:] = expanded(joined("\n".join(lines)), owners_of(value, parent))


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx; before numpydoc, which makes fields of the sections."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
