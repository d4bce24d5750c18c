"""comparisons/small_studies.py: its first study is that of the tutorial."""

import re
from pathlib import Path

from comparisons import small_studies

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "small_clinical_data.rst"


def test_the_first_study_is_the_tutorial_s():
    page = PAGE.read_text("utf-8")
    found = small_studies.study(0)
    nested, chosen = re.search(r"Nested pair_accuracy (\S+)", page)[1], re.search(r"held out (\S+), of", page)[1]
    assert f"{found['nested estimate']:.4f}" == nested
    assert f"{found['score of the chosen alpha']:.4f}" == chosen
    assert f"\n>>> round(float(elsewhere), 3)\n{found['true value']:.3f}\n" in page


def test_means_and_differences_are_printed(monkeypatch, capsys):
    studies = {0: (0.9, 0.7), 1: (0.8, 0.8)}
    names = ("score of the chosen alpha", "true value")
    monkeypatch.setattr(small_studies, "study", lambda seed: dict(zip(names, studies[seed], strict=True)))
    monkeypatch.setattr("sys.argv", ["small_studies", "--studies", "2"])
    small_studies.main()
    first, second = capsys.readouterr().out.splitlines()
    assert "+0.850 ± 0.050" in first
    assert first.endswith("minus the true value +0.100 ± 0.100")
    assert "minus" not in second
