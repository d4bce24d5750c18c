"""The reference of the command line, made of the program: ``.. commands::``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click

from rankrls.cli._options import METHODS
from rankrls.cli._program import GROUPS, GroupedOption, root


def plain(text: str) -> str:
    """Text in which nothing is markup."""
    return re.sub(r"([*`|\\])", r"\\\1", text)


def paragraphs(command: click.Command) -> Iterator[str]:
    """The help of a command, with its examples as blocks."""
    for text in (command.help or "").split("\n\n"):
        joined = " ".join(text.split())
        if joined.startswith("Example: "):
            yield from ["", "Example::", "", f"   {joined.removeprefix('Example: ')}", ""]
        else:
            yield from ["", plain(joined), ""]


def of_command(name: str, command: click.Command) -> Iterator[str]:
    """The section of a command: its help, its call, and its options in groups."""
    context = click.Context(command, info_name=f"rankrls {name}")
    usage = " ".join([f"rankrls {name}", *command.collect_usage_pieces(context)])
    yield from [f".. _command-{name}:", "", name, "-" * len(name), "", f".. program:: rankrls {name}", ""]
    yield from ["", ".. code-block:: text", "", f"   {usage}", ""]
    yield from paragraphs(command)
    for group in GROUPS:
        options = [p for p in command.params if isinstance(p, GroupedOption) and p.group == group]
        records = [(p, record) for p in options if (record := p.get_help_record(context))]
        if records:
            yield from ["", f".. rubric:: {group.capitalize()}", ""]
        for option, (call, text) in records:
            yield from [f".. option:: {call}", "", f"   {plain(text)}", ""]
            if option.name == "method":
                yield from [f"   * ``{method}``: :class:`~rankrls.{kind}`" for method, kind in METHODS.items()]
                yield ""


def reference() -> list[str]:
    """The whole reference, as reStructuredText."""
    return [line for name, command in root.commands.items() for line in of_command(name, command)]


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    from sphinx.util.docutils import SphinxDirective

    class Commands(SphinxDirective):
        """``.. commands::``"""

        def run(self) -> list[Any]:
            """The sections of all commands."""
            return self.parse_text_to_nodes("\n".join(reference()), allow_section_headings=True)

    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
