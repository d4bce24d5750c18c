"""Linear RankRLS on large sparse data: table 1 and figures 1 and 2 of the 2010 paper.

Section 4 of Airola, Pahikkala, Salakoski: Large Scale Training Methods for Linear RankRLS (2010): Tikhonov
regularization, regularization by iteration and the hybrid of both, learning from labels and from a sample of a million
pairs. Every alpha and every iteration comes from one Krylov run.

Data sets: rcv1, the paper's; reuters (Reuters-21578), its smaller sibling; parses, RLScore's sample of the paper's
parses; and synthetic, made-up documents of RCV1's shape, whose errors mean nothing (4 GB of memory).
"""

from __future__ import annotations

import gzip
import html
import re
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks import _text
from papers import parse_ranking
from papers._tables import MissingDataError, Table, paper_figures
from rankrls import CGRankRLS
from rankrls.metrics import Measure

PAIRS = 1_000_000
TOPIC = "earn"
ALPHAS = tuple(2.0**k for k in range(-10, 11))
FIGURE_ALPHAS = (0.0, *(2.0**k for k in (-10, -5, 0, 5, 10)))
MAX_ITER, TOL, PATIENCE = 500, 1e-5, 10
VALIDATION_SHARE = 0.2
PAPER_VALIDATION, PAPER_TEST = 8149, 23_149
QUICK_ROWS, QUICK_FILES, QUICK_PAIRS = (12_000, 2000, 2000), 3, 20_000
METHODS = {
    "Tikhonov": ("tikhonov", ALPHAS),
    "early stopping": ("early_stopping", (0.0,)),
    "hybrid": ("hybrid", ALPHAS),
}
"""Methods 1 to 3 of the paper: alpha by validation, each to convergence; iterations by validation, alpha = 0; both."""


@dataclass(frozen=True)
class Items:
    """Rows of features with labels, in queries or as one ranking."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any] | None = None

    def rows(self, rows: NDArray[Any]) -> Items:
        return Items(self.X[rows], self.y[rows], None if self.qid is None else self.qid[rows])


@dataclass(frozen=True)
class Task:
    """One data set, split."""

    name: str
    train: Items
    validation: Items
    test: Items


def _split(size: int, number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to learn from, and so many others drawn at random."""
    chosen = np.zeros(size, dtype=bool)
    chosen[np.random.default_rng(0).permutation(size)[:number]] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def reuters(data: Path, *, quick: bool) -> Task:
    """The ModApte split of Reuters-21578, one topic against the rest; TF-IDF of words and pairs of words.

    Vocabulary and document frequencies are those of the training documents, of which 20 % at random validate.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    files = sorted(data.rglob("reut2-0*.sgm*"))
    if not files:
        raise MissingDataError("no reut2-000.sgm to reut2-021.sgm")
    stories = [story for path in ((*files[:QUICK_FILES], files[-1]) if quick else files) for story in stories_of(path)]
    texts = {split: [text for name, text, _ in stories if name == split] for split in ("TRAIN", "TEST")}
    labels = {split: np.array([float(TOPIC in t) for name, _, t in stories if name == split]) for split in texts}
    fitted, chosen = _split(len(texts["TRAIN"]), int(VALIDATION_SHARE * len(texts["TRAIN"])))
    weigh = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z]+\b")
    X = sparse.csr_array(weigh.fit_transform([texts["TRAIN"][k] for k in fitted]))
    held = sparse.csr_array(weigh.transform([texts["TRAIN"][k] for k in chosen]))
    test = Items(sparse.csr_array(weigh.transform(texts["TEST"])), labels["TEST"])
    return Task("reuters", Items(X, labels["TRAIN"][fitted]), Items(held, labels["TRAIN"][chosen]), test)


_STORY = re.compile(r"<REUTERS(?P<head>[^>]*)>(?P<body>.*?)</REUTERS>", re.DOTALL)
_SPLIT = re.compile(r'LEWISSPLIT="(TRAIN|TEST)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)


def stories_of(path: Path) -> list[tuple[str, str, set[str]]]:
    """Split, text (title, dateline, body) and topics of each story of a file that has a split and was given topics."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    out = []
    for story in _STORY.finditer(content.decode("latin-1")):
        split, text = _SPLIT.search(story["head"]), _TEXT.search(story["body"])
        if split is None or 'TOPICS="YES"' not in story["head"] or text is None:
            continue
        found = _TOPICS.search(story["body"])
        topics = set(re.findall(r"<D>(.*?)</D>", found[1])) if found else set()
        out.append((split[1], html.unescape(re.sub(r"<[^>]+>", " ", text[1])), topics))
    return out


def parses(data: Path, *, quick: bool = False) -> Task:
    """RLScore's sample; a fifth of the training sentences validate: far too few, so the errors say little."""
    train, test = (Items(part.X, part.y, part.sentence) for part in parse_ranking.load(parse_ranking.sample(data)))
    names = np.unique(train.qid)
    fitted, chosen = (
        np.isin(train.qid, names[part]) for part in _split(len(names), round(VALIDATION_SHARE * len(names)))
    )
    return Task("parses", train.rows(fitted), train.rows(chosen), test)


def synthetic(data: Path | None = None, *, quick: bool) -> Task:
    """Made-up documents of RCV1's shape and sparsity."""
    rows, columns = _text.RCV1
    sizes, columns = (QUICK_ROWS, columns // 8) if quick else ((rows, PAPER_VALIDATION, PAPER_TEST), columns)
    return Task("synthetic", *(Items(*_text.documents(size, columns, seed=seed)) for seed, size in enumerate(sizes)))


def rcv1(data: Path, *, quick: bool = False) -> Task:
    """CCAT against the rest, from the files of ``sklearn.datasets.fetch_rcv1(data_home=data)``.

    The paper's 781265 training, 8149 validation and 23149 test documents are 8149 more than the collection has. Here
    the test documents are the collection's own training part, the validation documents 8149 of the others at random.
    """
    from sklearn.datasets import fetch_rcv1

    try:
        found = fetch_rcv1(data_home=data, subset="all", download_if_missing=False)
    except OSError:
        raise MissingDataError("no files of sklearn.datasets.fetch_rcv1") from None
    y = found.target[:, [list(found.target_names).index("CCAT")]].toarray().ravel().astype(np.float64)
    items = Items(sparse.csr_array(found.data), y)
    fitted, chosen = (PAPER_TEST + part for part in _split(len(y) - PAPER_TEST, PAPER_VALIDATION))
    return Task("rcv1", items.rows(fitted), items.rows(chosen), items.rows(np.arange(PAPER_TEST)))


def sampled_pairs(items: Items, number: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a row with the higher and one with the lower label, drawn with replacement as in the paper."""
    rng = np.random.default_rng(0)
    above, below = np.flatnonzero(items.y == items.y.max()), np.flatnonzero(items.y == items.y.min())
    return rng.choice(above, size=number), rng.choice(below, size=number)


@dataclass(frozen=True)
class Training:
    """Labels, or pairs sampled from them."""

    items: Items
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None

    def fit(self, model: CGRankRLS, validation: Items | None = None) -> CGRankRLS:
        """Fit, choosing by the validation items where there are any."""
        given: dict[str, Any] = {} if validation is None else {"X_val": validation.X, "y_val": validation.y}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged within the paper's 500 iterations
            if self.pairs is not None:
                return model.fit_pairs(self.items.X, *self.pairs, **given)
            if validation is not None:
                given["qid_val"] = validation.qid
            return model.fit(self.items.X, self.items.y, qid=self.items.qid, **given)


@dataclass(frozen=True)
class Outcome:
    """One method on one data set: what it chose, its errors, and seconds of choosing and of one fit like the chosen."""

    alpha: float
    n_iter: int
    validation_error: float
    test_error: float
    choosing: float
    training: float


def judge(method: str, task: Task, training: Training) -> Outcome:
    """Choose, fit again with what was chosen, and evaluate on the test items."""
    selection, alphas = METHODS[method]
    choosing, model = _timed(lambda: training.fit(_learner(alphas, selection), task.validation))
    limit = MAX_ITER if selection == "tikhonov" else max(int(model.n_iter_), 1)
    alone, _ = _timed(lambda: training.fit(_learner((model.alpha_,), "tikhonov", max_iter=limit)))
    error = float(Measure("disagreement")(task.test.y, model.predict(task.test.X), qid=task.test.qid))
    return Outcome(float(model.alpha_), int(model.n_iter_), float(model.best_score_), error, choosing, alone)


def _learner(alphas: tuple[float, ...], selection: str, max_iter: int = MAX_ITER) -> CGRankRLS:
    return CGRankRLS(alphas, selection=selection, max_iter=max_iter, tol=TOL, patience=PATIENCE)


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def _warm_up(task: Task) -> None:
    """Compile what is timed later: nothing of the data set is looked at but its number formats."""
    data = task.train.X
    X = sparse.csr_array(np.arange(240.0).reshape(30, 8) % 7).astype(data.dtype)
    X.indices, X.indptr = X.indices.astype(data.indices.dtype), X.indptr.astype(data.indptr.dtype)
    items = Items(X, np.arange(30.0) % 3)
    for training in (Training(items), Training(items, (np.arange(5), np.arange(5, 10)))):
        training.fit(_learner(ALPHAS, "hybrid", max_iter=3), items)


def run(task: Task, *, quick: bool = False, figures: Path | None = None) -> Iterator[Table]:
    """The three methods on labels, and on pairs where there are two labels; drawn into a folder where one is given."""
    _warm_up(task)
    kinds = {"labels": Training(task.train)}
    if task.train.qid is None:
        kinds["pairs"] = Training(task.train, sampled_pairs(task.train, QUICK_PAIRS if quick else PAIRS))
    outcomes = {
        f"{kind}: {method}": judge(method, task, training) for kind, training in kinds.items() for method in METHODS
    }
    paper = paper_figures("large_scale", "parses" if task.name == "parses" else "rcv1")
    whose = "" if task.name in ("parses", "rcv1") else " (paper: RCV1)"
    notes = tuple(
        f"{name}: alpha {outcome.alpha:.4g}, {outcome.n_iter} iterations, validation error "
        f"{outcome.validation_error:.5f}"
        for name, outcome in outcomes.items()
    )
    errors = {name: {"error": outcome.test_error} for name, outcome in outcomes.items()}
    m, n = task.train.X.shape
    title = f"{task.name}, {m} items to learn from, {n} features"
    yield Table(f"{title}: test error{whose}", errors, paper, 5, notes)
    seconds = {name: {"training, s": o.training, "choosing, s": o.choosing} for name, o in outcomes.items()}
    yield Table(f"{task.name}: seconds{whose}", seconds, paper, 2)
    if figures is not None:
        for kind, training in kinds.items():
            draw(training, task.validation, figures / f"{task.name}-{kind}.png", f"{task.name}, {kind}")


def draw(training: Training, validation: Items, path: Path, title: str) -> None:
    """The paper's figure: validation error against iterations for some alphas."""
    from matplotlib.figure import Figure

    model = training.fit(_learner(FIGURE_ALPHAS, "tikhonov"), validation)
    surface = np.atleast_2d(model.validation_surface_)
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for alpha, errors in zip(model.alphas_, surface, strict=True):
        known = ~np.isnan(errors)
        label = f"alpha = 2^{np.log2(alpha):.0f}" if alpha else "alpha = 0"
        axes.plot(np.arange(1, len(errors) + 1)[known], errors[known], label=label)
    scale = "log" if np.nanmin(surface) > 0.0 else "linear"
    axes.set(xscale="log", yscale=scale, xlabel="iterations", ylabel="ranking error on validation data", title=title)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
