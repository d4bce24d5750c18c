"""The example on handwritten digits: the figures of its page."""

import importlib
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_the_figures_of_the_page(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    demo = importlib.import_module("query_by_example")
    demo.main()
    printed = capsys.readouterr().out.splitlines()
    shown = re.findall(r"(?m)^   ((?:ranked by|distance|linear|Gaussian) .*)$", demo.__doc__)
    assert len(shown) == 4
    assert {*shown} <= {*printed}
    assert (tmp_path / "demo-output" / "query_by_example.png").stat().st_size > 10_000
