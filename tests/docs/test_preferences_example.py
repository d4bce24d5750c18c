"""The example on people's votes: on made-up votes of the same form, and its figures on the real ones."""

import csv
import importlib.util
import json
import re
import sys
from itertools import combinations
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
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


@pytest.fixture
def folder(tmp_path):
    """Votes for the answer with more exclamation marks; every third pair is a tie."""
    rng = np.random.default_rng(0)
    answers, votes = [], []
    for prompt in range(5):
        marks = rng.permutation(12)
        for model, n in enumerate(marks):
            text = " ".join(f"word{k}" for k in rng.integers(40, size=rng.integers(2, 20)))
            answers.append(
                {"prompt": prompt, "model": model, "result": f" {text}{'!' if n > 5 else '.'}\n", "slug": "x"}
            )
        for number, (a, b) in enumerate(combinations(range(12), 2)):
            left, right = (a, b) if rng.random() < 0.5 else (b, a)
            winner = "tie" if number % 3 == 0 else "left" if marks[left] > marks[right] else "right"
            votes += [
                {"prompt": prompt, "model_x": left, "model_y": right, "worker": k, "winner": winner} for k in (1, 2)
            ]
    answers.append({"prompt": 99, "model": 0, "result": "nobody voted on this", "slug": "y"})
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(a) + "\n" for a in answers), encoding="utf-8")
    with open(tmp_path / "crowd-comparisons.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, votes[0])
        writer.writeheader()
        writer.writerows(votes)
    return tmp_path


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
            [interval.estimate, interval.low, interval.high], abs=2e-3
        )
