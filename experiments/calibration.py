"""Do the posterior's intervals hold? Labels are drawn from what it assumes; only alpha, or the balance, differs.

    python experiments/calibration.py                  # about a minute

Each draw has queries with free levels, standard normal features, normal weights and the same noise in every item.
Counted are the differences of new items' true scores that lie inside their 95 % intervals, and how large the squared
error is beside the variance that the posterior claims (1 is right).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from rankrls import RankRLS, RankRLSCV
from rankrls.inspection import posterior

SIZES = {"12 queries of 10": [10] * 12, "12 queries of 2 to 40": [2, 2, 3, 3, 4, 5, 6, 8, 12, 20, 30, 40]}
SPREAD = 0.5  # of the weights, where the noise's is 1


def alpha_of(how: str, X: np.ndarray, y: np.ndarray, qid: np.ndarray, balance: str) -> float | str:
    """The alpha that the labels were drawn with, the one of the largest evidence, or the one that ranks best."""
    if how == "true":
        return 1.0 / SPREAD**2
    if how == "evidence":
        return "evidence"
    return float(RankRLSCV(balance=balance).fit(X, y, qid=qid).alpha_)


def draw(sizes: list[int], n: int, how: str, balance: str, seed: int) -> tuple[float, float]:
    """Share of intervals that cover, and squared error over variance, of 300 differences."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X, weights = rng.normal(size=(len(qid), n)), SPREAD * rng.normal(size=n)
    y = X @ weights + 3.0 * rng.normal(size=len(sizes))[qid] + rng.normal(size=len(qid))
    a, b = rng.normal(size=(2, 300, n))
    found = posterior(RankRLS(balance=balance), X, y, qid=qid, alpha=alpha_of(how, X, y, qid, balance))
    mean, std = found.difference(a, b)
    z = (mean - (a - b) @ weights) / std
    return float(np.mean(np.abs(z) < 1.96)), float(np.mean(z**2))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args(argv)
    start = time.perf_counter()
    print(f"{'queries':24s}{'features':>9s}{'balance':>10s}{'alpha':>10s}{'95 % cover':>12s}{'error / variance':>18s}")
    for name, sizes in SIZES.items():
        for n in (5, 40):
            for balance, how in (
                ("examples", "true"),
                ("examples", "evidence"),
                ("examples", "ranking"),
                ("pairs", "evidence"),
                ("queries", "evidence"),
            ):
                found = np.array([draw(sizes, n, how, balance, seed) for seed in range(options.draws)])
                cover, ratio = found.mean(axis=0)
                print(f"{name:24s}{n:>9d}{balance:>10s}{how:>10s}{100 * cover:>11.1f}%{ratio:>18.2f}", flush=True)
    print(f"({time.perf_counter() - start:.0f} s)")


if __name__ == "__main__":
    main()
