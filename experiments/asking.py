"""Does it pay to ask the pair that the posterior names? Accuracy against the number of questions asked.

    python experiments/asking.py                       # both tables, about ten minutes
    python experiments/asking.py --repeats 3 --data synthetic

Half of the items can be asked about, the other half judge: the share of their pairs that come out right. A question is
a pair of items, its answer a yes or no: of diabetes progression in scikit-learn's diabetes data (442 patients, 10
features), and of a noisy linear score in synthetic data (400 items, 20 features). The model is linear, with the alpha
of the largest evidence after each answer. "random" asks pairs at random; all start with the same 10 random pairs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS
from rankrls.inspection import pair_posterior, pairs_to_ask
from rankrls.metrics import pair_accuracy

STRATEGIES = ("random", "vote", "variance", "even")
FIRST = 10


def diabetes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Callable[[int, int], bool]]:
    """Features, labels to judge by, and who answers."""
    X, y = load_diabetes(return_X_y=True)
    return X, y, lambda a, b: bool(y[a] > y[b] if y[a] != y[b] else rng.random() < 0.5)


def synthetic(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, Callable[[int, int], bool]]:
    """Votes by a linear score and noise as large as half its spread."""
    X = rng.normal(size=(400, 20))
    scores = X @ rng.normal(size=20)
    noise = 0.5 * scores.std()
    return X, scores, lambda a, b: bool(scores[a] - scores[b] + noise * rng.normal() > 0)


DATA = {"diabetes": diabetes, "synthetic": synthetic}


def run(name: str, strategy: str, seed: int, questions: int) -> np.ndarray:
    """Accuracy on the other half after each question from the first ``FIRST`` on."""
    rng = np.random.default_rng(seed)
    X, y, answer = DATA[name](rng)
    X = StandardScaler().fit_transform(X)
    order = rng.permutation(len(X))
    asked_about, judges = order[: len(X) // 2], order[len(X) // 2 :]
    pool = X[asked_about]
    winners: list[int] = []
    losers: list[int] = []
    curve = []
    while len(winners) < questions:
        if strategy == "random" or len(winners) < FIRST:
            a, b = rng.choice(len(pool), 2, replace=False)
        else:
            found = pairs_to_ask(known, pool, criterion=strategy, exclude=(winners, losers))  # noqa: F821
            a, b = int(found.a[0]), int(found.b[0])
        if not answer(asked_about[a], asked_about[b]):
            a, b = b, a
        winners.append(int(a))
        losers.append(int(b))
        if len(winners) >= FIRST:
            known = pair_posterior(RankRLS(), pool, winners, losers, alpha="evidence")
            model = RankRLS(alpha=known.alpha).fit_pairs(pool, winners, losers)
            curve.append(pair_accuracy(y[judges], model.predict(X[judges])))
    return np.array(curve)


def needed(curve: np.ndarray, target: float) -> int | None:
    """Questions after which the mean accuracy is at least the target for the first time."""
    reached = np.flatnonzero(curve >= target)
    return int(reached[0]) + FIRST if len(reached) else None


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(argv)
    marks = [q for q in (10, 20, 40, 80, 150) if q <= options.questions]
    for name in options.data:
        start = time.perf_counter()
        curves = {
            strategy: np.array([run(name, strategy, seed, options.questions) for seed in range(options.repeats)])
            for strategy in STRATEGIES
        }
        target = float(curves["random"].mean(axis=0)[-1])
        print(f"{name}: pair accuracy after so many questions, mean of {options.repeats} runs (standard error)")
        print(f"{'':10s}" + "".join(f"{q:>16d}" for q in marks) + f"{'to ' + format(target, '.4f'):>16s}")
        for strategy, found in curves.items():
            mean = found.mean(axis=0)
            error = found.std(axis=0, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.zeros_like(mean)
            cells = [f"{mean[q - FIRST]:.4f} ({error[q - FIRST]:.4f})" for q in marks]
            reached = needed(mean, target)
            print(f"{strategy:10s}" + "".join(f"{cell:>16s}" for cell in cells) + f"{reached or '-'!s:>16s}")
        print(f"({time.perf_counter() - start:.0f} s)\n")


if __name__ == "__main__":
    main()
