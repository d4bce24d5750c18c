"""The data of the large scale experiment: training, validation and test items, and pairs sampled between the former."""

from __future__ import annotations

import gzip
import html
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _parse_protocol import load as load_sentences
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["PAIRS", "SOURCES", "Items", "Task", "load", "sampled_pairs"]

SOURCES = ("reuters", "parse", "synthetic", "rcv1")
PAIRS = 1_000_000
TOPIC = "earn"
_REUTERS_FILES = 22
_QUICK_FILES = 3
_VALIDATION_SHARE = 0.2
_PAPER_VALIDATION = 8149
_PAPER_TEST = 23_149
_QUICK_ROWS = {"synthetic": (12_000, 2000, 2000), "rcv1": (20_000, 4000, 8000)}


@dataclass(frozen=True)
class Items:
    """Rows of features with labels, in queries or as one ranking."""

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any] | None

    def rows(self, rows: NDArray[Any]) -> Items:
        """Some of them."""
        return Items(self.X[rows], self.y[rows], None if self.qid is None else self.qid[rows])


@dataclass(frozen=True)
class Task:
    """One data set, split.

    Attributes
    ----------
    name, title : str
    how : tuple of str
        What a reader must know of how it was made and split.
    """

    name: str
    title: str
    train: Items
    validation: Items
    test: Items
    how: tuple[str, ...]

    @property
    def is_bipartite(self) -> bool:
        """One ranking of two labels, of which pairs can be sampled as the paper does."""
        return self.train.qid is None and len(np.unique(self.train.y)) == 2


def load(name: str, data: Path | None, *, quick: bool) -> Task:
    """Read or make one data set.

    Raises
    ------
    ValueError
        Where it is not there; the message says where it comes from.
    """
    if name == "synthetic":
        return _synthetic(quick)
    if name == "rcv1":
        return _rcv1(quick)
    if data is None:
        raise ValueError(f"{name} needs the folder of the data: --data DIR, or set RANKRLS_DATA.")
    return _reuters(data, quick) if name == "reuters" else _parse(data)


def sampled_pairs(items: Items, number: int, seed: int = 0) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Pairs of a row with the higher and one with the lower label, drawn with replacement as in the paper."""
    rng = np.random.default_rng(seed)
    above, below = np.flatnonzero(items.y == items.y.max()), np.flatnonzero(items.y == items.y.min())
    return rng.choice(above, size=number), rng.choice(below, size=number)


def _held_out(items: Items, number: int, seed: int = 0) -> tuple[Items, Items]:
    """Training and validation rows, drawn at random; of whole queries where there are any."""
    rng = np.random.default_rng(seed)
    if items.qid is None:
        chosen = np.zeros(len(items.y), dtype=bool)
        chosen[rng.permutation(len(items.y))[:number]] = True
    else:
        chosen = np.isin(items.qid, rng.permutation(np.unique(items.qid))[:number])
    return items.rows(np.flatnonzero(~chosen)), items.rows(np.flatnonzero(chosen))


def _reuters(data: Path, quick: bool) -> Task:
    folder = _find(data, "reuters21578", "reut2-000.sgm*", "the files reut2-000.sgm to reut2-021.sgm of Reuters-21578")
    files = sorted(folder.glob("reut2-0*.sgm*"))
    if len(files) != _REUTERS_FILES:
        raise ValueError(f"{folder} holds {len(files)} of the {_REUTERS_FILES} files reut2-*.sgm of Reuters-21578.")
    texts: dict[str, list[str]] = {"TRAIN": [], "TEST": []}
    labels: dict[str, list[float]] = {"TRAIN": [], "TEST": []}
    # the test documents are in the last files
    for path in (*files[:_QUICK_FILES], files[-1]) if quick else files:
        for split, text, topics in _stories(path):
            texts[split].append(text)
            labels[split].append(float(TOPIC in topics))
    from sklearn.feature_extraction.text import TfidfVectorizer

    y = np.array(labels["TRAIN"])
    numbers = Items(sparse.csr_array(np.arange(len(y))[:, None]), y, None)
    fitted, chosen = _held_out(numbers, int(_VALIDATION_SHARE * len(y)))
    rows, chosen_rows = (part.X.toarray()[:, 0] for part in (fitted, chosen))
    weigh = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, token_pattern=r"(?u)\b[a-zA-Z][a-zA-Z]+\b")
    X = sparse.csr_array(weigh.fit_transform([texts["TRAIN"][k] for k in rows]))
    others = [
        sparse.csr_array(weigh.transform(part)) for part in ([texts["TRAIN"][k] for k in chosen_rows], texts["TEST"])
    ]
    how = (
        f"Topic {TOPIC!r} against the rest. Training and test documents are those of LEWISSPLIT; only stories that "
        'were given topics (TOPICS="YES") are taken, which is the ModApte split. '
        f"{_VALIDATION_SHARE:.0%} of the training documents, drawn at random, are the validation documents.",
        "Features: TF-IDF of words and word pairs that at least two training documents have, rows of length one; "
        "vocabulary and document frequencies are those of the training documents.",
    )
    return Task(
        "reuters",
        "Reuters-21578",
        Items(X, fitted.y, None),
        Items(others[0], chosen.y, None),
        Items(others[1], np.array(labels["TEST"]), None),
        how,
    )


_STORY = re.compile(r"<REUTERS(?P<head>[^>]*)>(?P<body>.*?)</REUTERS>", re.DOTALL)
_SPLIT = re.compile(r'LEWISSPLIT="(TRAIN|TEST)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>")
_TEXT = re.compile(r"<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")


def _stories(path: Path) -> list[tuple[str, str, set[str]]]:
    """Split, text (title, dateline, body) and topics of each story of a file that has a split."""
    content = path.read_bytes()
    if content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    out = []
    for story in _STORY.finditer(content.decode("latin-1")):
        split = _SPLIT.search(story["head"])
        text = _TEXT.search(story["body"])
        if split is None or 'TOPICS="YES"' not in story["head"] or text is None:
            continue
        found = _TOPICS.search(story["body"])
        topics = set(_TOPIC.findall(found[1])) if found else set()
        out.append((split[1], html.unescape(_TAG.sub(" ", text[1])), topics))
    return out


def _parse(data: Path) -> Task:
    folder = _find(
        data, "parse_ranking", "rank_train.light", "rank_train.light and rank_test.light of RLScore's examples"
    )
    both = [
        Items(part.X, part.y, part.sentence)
        for part in load_sentences([folder / f"rank_{name}.light" for name in ("train", "test")])
    ]
    fitted, chosen = _held_out(both[0], round(_VALIDATION_SHARE * len(np.unique(both[0].qid))))
    how = (
        "The hundred parses of 22 sentences that RLScore publishes; the paper has 7539 parses and the same features. "
        f"{_VALIDATION_SHARE:.0%} of the training sentences are the validation sentences: far too few to choose by, so "
        "the errors say little.",
    )
    return Task("parse", "Parse ranking, the published sample", fitted, chosen, both[1], how)


def _find(data: Path, name: str, pattern: str, what: str) -> Path:
    folder = data.expanduser()
    for place in (folder, folder / name):
        if place.is_dir() and any(place.glob(pattern)):
            return place
    raise ValueError(f"No {name} found in {folder}: it needs {what}, in the folder itself or in one named {name!r}.")


def _synthetic(quick: bool) -> Task:
    sys.path.append(str(Path(__file__).parents[1]))
    from benchmarks._text import RCV1, documents

    rows, columns = RCV1
    sizes = _QUICK_ROWS["synthetic"] if quick else (rows, _PAPER_VALIDATION, _PAPER_TEST)
    columns = columns // 8 if quick else columns
    parts = [Items(*documents(size, columns, seed=seed), None) for seed, size in enumerate(sizes)]
    how = (
        "Made-up documents of RCV1's shape and sparsity (Zipf's law; each document mixes two word distributions; the "
        "label says which prevails). They are for times; their errors are no match for the paper's.",
    )
    return Task("synthetic", "Generated, in RCV1's shape", *parts, how)


def _rcv1(quick: bool) -> Task:
    from sklearn.datasets import fetch_rcv1

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = fetch_rcv1(subset="all")
    except OSError as error:
        raise ValueError(
            "RCV1 could not be fetched (sklearn.datasets.fetch_rcv1 needs the internet once, and 656 MB): "
            f"{error}. 'synthetic' has its shape without."
        ) from None
    column = list(found.target_names).index("CCAT")
    y = np.asarray(found.target[:, [column]].todense()).ravel().astype(np.float64)
    X = sparse.csr_array(found.data)
    test = Items(X[:_PAPER_TEST], y[:_PAPER_TEST], None)  # the collection's own training part comes first
    rest = Items(X[_PAPER_TEST:], y[_PAPER_TEST:], None)
    wanted = _QUICK_ROWS["rcv1"] if quick else None
    fitted, chosen = _held_out(rest, wanted[1] if wanted else _PAPER_VALIDATION)
    if wanted:
        fitted, test = fitted.rows(np.arange(wanted[0])), test.rows(np.arange(wanted[2]))
    how = (
        "CCAT against the rest. The paper's 781265 training, 8149 validation and 23149 test documents are 8149 more "
        "than the collection's 804414. Here the test documents are the collection's own training part (23149), the "
        "validation documents 8149 of the other 781265 at random, and the remaining 773116 are learnt from.",
        "The paper's vectors have 47152 features, these 47236.",
    )
    return Task("rcv1", "RCV1-v2", fitted, chosen, test, how)
