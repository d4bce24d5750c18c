"""The tutorials as notebooks: made of the pages as they are, and run in order in an empty folder."""

from __future__ import annotations

import importlib.util
import json
import re

import pytest
from tests.docs.sessions import DOCS, run_command

SPEC = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
notebooks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebooks)


@pytest.mark.parametrize("page", notebooks.TUTORIALS)
def test_a_notebook_is_that_of_its_page(page):
    committed = (notebooks.FOLDER / f"{page}.ipynb").read_text("utf-8")
    assert committed == notebooks.notebook(page), "The page has changed: run make notebooks."


@pytest.mark.parametrize("page", notebooks.TUTORIALS)
def test_a_notebook_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    ran = 0
    for cell in json.loads((notebooks.FOLDER / f"{page}.ipynb").read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if source.startswith("%%bash"):
            magic, command = source.split("\n", 1)
            failed = "rankrls: error:" in run_command(re.sub(r"\\\n", " ", command))
            assert failed == magic.endswith("--no-raise-error"), command
        else:
            exec(compile(source, page, "exec"), names)
        ran += 1
    assert ran > 0


def test_prose_keeps_its_meaning():
    text = (
        "See :doc:`text`, :class:`~rankrls.RankRLS` and ``x`` of 2\\ :sup:`3` :math:`a_b`, ndcg\\@5.\n\n* one\n* two\n"
    )
    (cell,) = notebooks.merged(notebooks.cells_of(text))
    assert "".join(cell["source"]) == (
        "See [Text and other large sparse data](text.ipynb), `RankRLS` and `x` of 2<sup>3</sup> $a_b$, ndcg@5."
        "\n\n* one\n* two"
    )


def test_examples_keep_their_output():
    text = (
        ">>> for x in (1, 2):\n...     print(x)\n1\n2\n>>> x\n2\n"
        "\n.. code-block:: console\n\n   $ rankrls a \\\n       b\n   c\n"
    )
    first, second, third = notebooks.cells_of(text)
    assert ["".join(part) for part in (first["source"], first["outputs"][0]["text"])] == [
        "for x in (1, 2):\n    print(x)",
        "1\n2",
    ]
    assert ("".join(second["source"]), "".join(second["outputs"][0]["text"])) == ("x", "2")
    assert "".join(third["source"]) == "%%bash\nrankrls a \\\n    b"
