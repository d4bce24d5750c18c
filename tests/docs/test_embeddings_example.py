"""The example of embeddings, on the documentation of a few modules."""

import importlib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = ("numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.fft")


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # LightGBM 4.6 names columns itself
def test_in_one_go(capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    example = importlib.import_module("reranking_by_embeddings")
    report = example.main(MODULES, n_components=20, n_candidates=20, n_basis=50)
    assert {"cosine", "linear", "Gaussian"} <= {*report.measures["ndcg@10"].means}
    assert str(report) in capsys.readouterr().out
