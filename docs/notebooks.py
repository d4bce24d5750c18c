"""The tutorials as notebooks: prose becomes Markdown; examples become cells with the output that the page shows.

``python docs/notebooks.py`` writes them to ``examples/notebooks/``. The pages are the source: edit them, then run this.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).parent / "guide"
FOLDER = Path(__file__).parents[1] / "examples" / "notebooks"
TUTORIALS = ("search_relevance", "small_clinical_data", "leaderboards", "embeddings", "text", "large_data")
LEVELS = {"=": "#", "-": "##", "~": "###"}
INSTALL = (
    "This notebook needs rankrls: from a checkout, run `python -m pip install '.[plots,frames]'`. It runs on Linux."
)
Cell = dict[str, Any]


def markdown(source: str, attachments: dict[str, dict[str, str]] | None = None) -> Cell:
    cell: Cell = {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell | ({"attachments": attachments} if attachments else {})


def code(source: str, output: str = "") -> Cell:
    outputs = [{"name": "stdout", "output_type": "stream", "text": output.splitlines(keepends=True)}] if output else []
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": outputs,
        "source": source.splitlines(keepends=True),
    }


def title_of(page: str) -> str:
    """The title of a page of the guide; the last part of the name of another page."""
    path = GUIDE / f"{page}.rst"
    if not path.exists():
        return page.rpartition("/")[2].replace("_", " ")
    return next(line for line in path.read_text("utf-8").splitlines() if line and not line.startswith(".. "))


def link(page: str, text: str) -> str:
    """A link to the notebook of a tutorial; the text alone for other pages."""
    return f"[{text}]({page}.ipynb)" if page in TUTORIALS else f"*{text}*"


def role(found: re.Match[str]) -> str:
    """What a role such as ``:doc:`` shows."""
    name, text = found[1], found[2]
    shown, target = re.fullmatch(r"(?s)(?:(.*?)\s*<(.*)>|.*)", text).groups()  # type: ignore[union-attr]
    if name == "math":
        return f"${text}$"
    if name == "sup":
        return f"<sup>{text}</sup>"
    if name == "doc":
        page = target or text
        return link(page, shown or title_of(page))
    if name in ("ref", "download"):
        return f"*{shown or text}*"
    return f"`{shown or (text[1:].rpartition('.')[2] if text[0] == '~' else text)}`"


def inline(text: str) -> str:
    """Inline markup of Markdown for that of reStructuredText."""
    text = re.sub(r"\\ (?=:)", "", text)
    text = re.sub(r":([a-z]+):`([^`]+)`", role, text)
    text = re.sub(r"`([^`<]+) <([^>]+)>`_", r"[\1](\2)", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text).replace("\\@", "@")


def fenced(lines: list[str], language: str = "") -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def picture(name: str, alt: str) -> Cell | None:
    """A picture of the site's static files, inside the cell; none for those that the gallery draws."""
    path = (GUIDE / name).resolve()
    if path.suffix != ".png" or not path.exists() or "gallery" in path.parts:
        return None
    content = b64encode(path.read_bytes()).decode("ascii")
    return markdown(f"![{alt}](attachment:{path.name})", {path.name: {"image/png": content}})


def examples(lines: list[str]) -> Iterator[Cell]:
    """Cells of a block of interactive Python, each up to the output that it shows."""
    source, output = list[str](), list[str]()
    for line in lines:
        begins = line.startswith(">>>")
        if begins and output:
            yield code("\n".join(source), "\n".join(output))
            source, output = [], []
        if begins or (line.startswith("...") and not output):
            source.append(re.sub(r"\s+# doctest:.*", "", line[4:]))
        else:
            output.append(line)
    yield code("\n".join(source), "\n".join(output))


def commands(lines: list[str]) -> Iterator[Cell]:
    """Cells of a block of commands, one a cell."""
    for part in re.split(r"(?m)^\$ ", "\n".join(lines))[1:]:
        command = re.match(r"(?:.*\\\n)*.*", part)
        assert command
        output = part[command.end() :].strip("\n")
        magic = "%%bash --no-raise-error" if "error:" in output else "%%bash"
        yield code(f"{magic}\n{command[0]}", output)


def directive(name: str, argument: str, body: list[str]) -> Iterator[Cell]:
    """Cells of a directive and its indented lines."""
    options = {found[1]: found[2] for line in body if (found := re.match(r":(\w+): (.*)", line))}
    content = [line for line in body if not re.match(r":\w+:", line)]
    text = "\n".join(content).strip("\n")
    if name == "code-block" and argument == "console":
        yield from commands(content)
    elif name == "code-block":
        yield markdown(fenced(text.split("\n"), argument))
    elif name == "math":
        yield markdown(f"$${argument or text}$$")
    elif name in ("image", "figure"):
        if cell := picture(argument, options.get("alt", "")):
            yield cell
            if text:
                yield markdown(f"*{inline(text)}*")
    else:
        shown = inline(text).replace("\n", "\n> ")
        yield markdown(f"> **{name.capitalize()}.** {shown}")


def blocks(lines: list[str]) -> Iterator[list[str]]:
    """Paragraphs, and directives or literal blocks with their indented lines."""
    block, last = list[str](), ""  # the last line with text
    for line in lines:
        opened = block and (block[0].startswith(".. ") or last.endswith("::") or last.startswith("   "))
        ends = not line and not opened
        if block and (ends or (line and not block[-1] and not line.startswith("   "))):
            yield block
            block = []
        if line or block:
            block.append(line)
        last = line or last
    yield block


def cells_of(text: str) -> Iterator[Cell]:
    """The cells of a page."""
    for block in blocks(text.splitlines()):
        lines = "\n".join(block).rstrip("\n").split("\n")
        first = lines[0]
        if re.match(r"\.\. _[\w-]+:$", first) or ":download:" in first or not first:
            continue
        if found := re.match(r"\.\. ([\w-]+)::\s*(.*)", first):
            yield from directive(found[1], found[2], [line[3:] for line in lines[1:]])
        elif first.startswith(">>> "):
            yield from examples(lines)
        elif len(lines) > 1 and set(lines[1]) <= {*LEVELS} and len(set(lines[1])) == 1 and lines[1]:
            yield markdown(f"{LEVELS[lines[1][0]]} {inline(first)}")
        elif set(first) <= {"=", " "}:
            yield markdown(fenced(lines))
        else:
            start = next((n for n, line in enumerate(lines) if n and lines[n - 1].endswith("::")), len(lines))
            yield markdown(re.sub("::$", ":", inline("\n".join(lines[:start]))))
            if literal := "\n".join(lines[start:]).strip("\n"):
                yield markdown(fenced([line[3:] for line in literal.split("\n")]))


def merged(cells: Iterator[Cell]) -> list[Cell]:
    """One cell for neighbouring prose."""
    result = list[Cell]()
    for cell in cells:
        plain = cell["cell_type"] == "markdown" and "attachments" not in cell
        if plain and result and result[-1]["cell_type"] == "markdown" and "attachments" not in result[-1]:
            result[-1]["source"] += ["\n", "\n", *cell["source"]]
        else:
            result.append(cell)
    return result


def notebook(page: str) -> str:
    """The notebook of a tutorial, as text of its file."""
    title, *cells = [*cells_of((GUIDE / f"{page}.rst").read_text("utf-8"))]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {
        "cells": merged(iter([title, markdown(INSTALL), *cells])),
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write all of them."""
    FOLDER.mkdir(exist_ok=True)
    for page in TUTORIALS:
        (FOLDER / f"{page}.ipynb").write_text(notebook(page), "utf-8")


if __name__ == "__main__":
    main()
