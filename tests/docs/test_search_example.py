"""The demo, on the documentation of a few modules."""

import importlib
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = ("numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.fft")


def test_in_one_go(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    demo = importlib.import_module("search_documentation")
    reached = demo.main(MODULES, tmp_path, n_basis=80)
    printed = capsys.readouterr().out
    assert max(reached["linear"], reached["Gaussian"]) > reached["words alone"]
    assert "chosen on the training queries" in printed
    assert f"{reached['linear']:.3f}" in printed
    files = {path.name for path in tmp_path.iterdir()}
    assert files >= {"comparison.html", "search_documentation.png", "linear.rankrls", "solr-model.json"}
