"""The example on people's votes: its figures on the real ones."""

import importlib.util
import re
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "preferences_among_answers.py"


@pytest.fixture
def example(monkeypatch):
    matplotlib.use("Agg")
    spec = importlib.util.spec_from_file_location("preferences_among_answers", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    plt.close("all")


@pytest.mark.shared_data
def test_the_figures_of_the_page(example, data_dir):
    folder = data_dir / "llm_votes"
    if not folder.is_dir():
        pytest.skip("RANKRLS_DATA has no folder llm_votes")
    page = EXAMPLE.read_text("utf-8")
    votes = example.read_votes(folder)
    decided = int(votes.strength.sum())
    assert f"#    {len(votes.texts)} answers, {len(votes.winners)} votes, {decided} of them decided\n" in page
    assert f"both took a side agreed: {example.agreement(votes):.3f}\n" in page
    assert (
        f"votes by 124 people on answers of {len(set(votes.author))} models to {len(set(votes.prompt))} prompts" in page
    )
    shorter = example.shorter_wins(votes)
    assert (shorter > 0.5).sum() == 9
    assert "on nine of the thirteen prompts it lost" in page
    for name, shares in (
        ("shorter answer", shorter),
        ("form", example.held_out(votes, ["form"])),
        ("author", example.held_out(votes, ["author"])),
    ):
        interval = example.bootstrap_interval(shares, random_state=0)
        found = re.search(rf"#    {name} +(\S+) \[(\S+), (\S+)\]", page)
        assert [float(v) for v in found.groups()] == pytest.approx(
            [interval.value, interval.low, interval.high], abs=2e-3
        )
