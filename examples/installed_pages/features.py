"""What is known of a query and a candidate: likeness of their words, names and places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from installed_pages.pages import Library, place_in_source
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

FIRST = 5  # the candidates that are taken for good ones where others are compared with them


@dataclass(frozen=True)
class Table:
    """Queries, each with its candidates; features, labels (1: under See Also) and the order by words alone."""

    names: list[str]  # of the features
    queries: np.ndarray  # (q,) page numbers
    candidates: np.ndarray  # (q, c) page numbers, those with the most similar words first
    features: np.ndarray  # (q, c, n)
    labels: np.ndarray  # (q, c)

    def of(self, chosen: np.ndarray) -> Table:
        """Some of the queries."""
        arrays = (self.queries, self.candidates, self.features, self.labels)
        return Table(self.names, *(array[chosen] for array in arrays))

    def rows(self, kept: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """X, y and qid of the candidates ``kept`` (their places, for each query), or of all."""
        if kept is None:
            kept = np.broadcast_to(np.arange(self.labels.shape[1]), self.labels.shape)
        X = np.take_along_axis(self.features, kept[:, :, None], axis=1)
        y = np.take_along_axis(self.labels, kept, axis=1)
        return X.reshape(-1, X.shape[2]), y.ravel(), np.repeat(self.queries, kept.shape[1])


def words_of_name(name: str) -> str:
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()


def _parameters(text: str) -> str:
    heads = [line.split(":")[0] for line in text.splitlines() if line[:1].strip()]
    return " ".join(name for head in heads for name in re.findall(r"[A-Za-z_]\w*", head))


def _texts(library: Library) -> dict[str, list[str]]:
    pages = library.pages
    texts = {
        "name": [words_of_name(page.short_name) for page in pages],
        "summary": [page.summary for page in pages],
        "introduction": [page.sections[""] for page in pages],
        "module's name": [page.module.replace(".", " ") for page in pages],
        "names of parameters": [_parameters(page.sections.get("Parameters", "")) for page in pages],
    }
    for title in ("Parameters", "Returns", "Notes", "Examples", "References"):
        texts[title.lower()] = [page.sections.get(title, "") for page in pages]
    return texts


def _tfidf(texts: list[str], **settings) -> sp.csr_matrix:
    settings = {"sublinear_tf": True} | (settings or {"stop_words": "english"})
    if not any(re.search(r"\w\w", text) for text in texts):
        return sp.csr_matrix((len(texts), 1))
    return TfidfVectorizer(**settings).fit_transform(texts)


def _products(A: sp.csr_matrix, B: sp.csr_matrix | None = None) -> np.ndarray:
    return (A @ (A if B is None else B).T).toarray().astype(np.float32)


def _topics(A: sp.csr_matrix, n: int) -> np.ndarray:
    """Cosines after latent semantic analysis."""
    n = min(n, *(size - 1 for size in A.shape))
    U = normalize(TruncatedSVD(n, random_state=0).fit_transform(A)).astype(np.float32)
    return U @ U.T


def _ranks(values: np.ndarray) -> np.ndarray:
    """Places in each row, 1 for the greatest value; of equal values the first one comes first."""
    order = np.argsort(-values, axis=1, kind="stable")
    ranks = np.empty(values.shape, dtype=np.float32)
    np.put_along_axis(ranks, order, np.arange(1, values.shape[1] + 1, dtype=np.float32)[None], axis=1)
    return ranks


class _Features:
    """Columns of the table, filled one likeness of all pages at a time, so that only one of them is held."""

    def __init__(self, queries: np.ndarray, candidates: np.ndarray):
        self.row, self.candidates = queries[:, None], candidates
        self.columns: dict[str, np.ndarray] = {}

    def add(self, name: str, values: np.ndarray, rank: bool = False) -> None:
        self.columns[name] = values
        if rank:
            self.columns[f"rank by {name}"] = 1 / np.log2(1 + _ranks(values))

    def likeness(self, name: str, S: np.ndarray, rank: bool = True, beyond: bool = False) -> None:
        """
        The values of S for the candidates, their ranks, and ``beyond`` the pair: the query's rank among all that
        is like the candidate, and how like the candidate is to the query's first ones.
        """
        self.add(name, S[self.row, self.candidates], rank)
        if beyond:
            others = S.copy()
            np.fill_diagonal(others, -1)
            ranks = _ranks(others)
            self.add(f"query's rank by {name}", 1 / np.log2(1 + ranks[self.candidates, self.row]))
            self.add(f"often first by {name}", np.log1p((ranks <= 2 * FIRST).sum(axis=0))[self.candidates])
            first = self.candidates[:, :FIRST, None]
            counts = first != self.candidates[:, None, :]
            near = (S[first, self.candidates[:, None, :]] * counts).sum(axis=1) / counts.sum(axis=1)
            self.add(f"first ones' {name}", near)


def _words(table: _Features, texts: dict[str, list[str]], library: Library, body, vectorizer) -> None:
    for name, documents in texts.items():
        rank = name not in ("notes", "references", "module's name")
        table.likeness(name, _products(_tfidf(documents)), rank, beyond=name == "summary")
    letters = _tfidf([page.short_name.lower() for page in library.pages], analyzer="char_wb", ngram_range=(2, 4))
    table.likeness("letters of the name", _products(letters), beyond=True)
    names, summaries = vectorizer.transform(texts["name"]), vectorizer.transform(texts["summary"])
    table.likeness("its name in the query's text", _products(body, names))
    table.likeness("the query's name in its text", _products(names, body))
    table.likeness("its name in the query's summary", _products(summaries, names), rank=False)
    table.likeness("the query's name in its summary", _products(names, summaries), rank=False)
    table.likeness("topics", _topics(body, 100), beyond=True)
    table.likeness("topics of the introduction", _topics(_tfidf(texts["introduction"]), 50))


def _references(table: _Features, library: Library) -> None:
    """Who names whom, outside See Also; and who is named, or names, together with whom."""
    M = library.mentions()
    counts = np.log1p(M.toarray()).astype(np.float32)
    table.likeness("the query names it", counts, rank=False)
    table.likeness("it names the query", counts.T, rank=False)
    often = np.bincount(M.indices, minlength=len(library))
    table.add("often named", np.log1p(often)[table.candidates])
    M.data = 1 + np.log(M.data)
    table.likeness("both name the same", _products(normalize(M @ sp.diags_array(np.log(len(library) / (1 + often))))))
    M.data[:] = 1
    table.likeness("named by the same", _products(normalize(normalize(M).T.tocsr())))
    together, near = (np.zeros((len(library), len(library)), dtype=np.float32) for _ in range(2))
    for run in library.lists():
        place, block = np.arange(len(run)), np.ix_(run, run)
        together[block] = np.maximum(together[block], 1 / np.log2(1 + len(run)))
        near[block] = np.maximum(near[block], 1 / (1 + np.abs(place[:, None] - place)))
    table.likeness("in one list of the module", together, rank=False)
    table.likeness("near in that list", near, rank=False)


def _places(table: _Features, library: Library) -> None:
    """Packages, modules, and lines of the source."""
    row, columns = table.row, table.candidates
    modules = np.array([page.module for page in library.pages])
    packages = np.array([page.module.partition(".")[0] for page in library.pages])
    sources, lines = map(np.array, zip(*(place_in_source(page.value) for page in library.pages), strict=True))
    classes = np.array([isinstance(page.value, type) for page in library.pages])
    for name, values in {"module": modules, "package": packages, "source file": sources, "kind": classes}.items():
        table.add(f"same {name}", (values[row] == values[columns]).astype(float))
    known = (sources[row] == sources[columns]) & (lines[row] > 0) & (lines[columns] > 0)
    table.add("near in the source", known / (1 + np.log1p(np.abs(lines[row] - lines[columns]) / 20)), rank=True)
    table.add("top level", np.isin(modules, packages)[columns].astype(float))
    same = modules[columns][:, :, None] == modules[columns][:, None, :]
    table.add("candidates of its module", same.mean(axis=2))
    length = np.log([sum(map(len, page.sections.values())) for page in library.pages])
    table.add("length", length[columns])
    table.add("like length", -np.abs(length[columns] - length[row]))


def _names(table: _Features, library: Library) -> None:
    """How two names begin, end, and hold each other."""
    names = [page.short_name.lower() for page in library.pages]
    words = [set(words_of_name(page.short_name).split()) for page in library.pages]

    def each(function) -> np.ndarray:
        pairs = zip(table.row.ravel(), table.candidates, strict=True)
        return np.array([[function(query, item) for item in items] for query, items in pairs], dtype=float)

    def common(a: str, b: str) -> float:
        differs = (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
        return next(differs, min(len(a), len(b))) / max(len(a), len(b))

    start = each(lambda q, c: common(names[q], names[c]))
    end = each(lambda q, c: common(names[q][::-1], names[c][::-1]))
    table.add("same beginning", start, rank=True)
    table.add("same end", end)
    table.add("the rest of the name", np.maximum(1 - start - end, 0))
    table.add("its name holds the query's", each(lambda q, c: names[q] in names[c]))
    table.add("the query's name holds its", each(lambda q, c: names[c] in names[q]))
    table.add("other words in its name", each(lambda q, c: len(words[c] - words[q])))
    table.add("other words in the query's", each(lambda q, c: len(words[q] - words[c])))


def build(library: Library, answers: Iterable[set[int]], n_candidates: int = 100) -> Table:
    """Every page that lists others is a query; its candidates are those most like it by the words of the whole text."""
    answers = list(answers)
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english")
    texts = [page.text("Examples", "References") for page in library.pages]
    named = [f"{words_of_name(page.short_name)} {text}" for page, text in zip(library.pages, texts, strict=True)]
    body = vectorizer.fit_transform(named)
    S = _products(body)
    queries = np.array([number for number, listed in enumerate(answers) if listed])
    others = S[queries]
    others[np.arange(len(queries)), queries] = -1
    candidates = np.argsort(-others, axis=1, kind="stable")[:, : min(n_candidates, len(library) - 1)]
    labels = np.array([[item in answers[q] for item in row] for q, row in zip(queries, candidates, strict=True)])
    found = labels.any(axis=1)
    queries, candidates, labels = queries[found], candidates[found], labels[found]

    table = _Features(queries, candidates)
    table.likeness("words", S, beyond=True)
    _words(table, _texts(library), library, body, vectorizer)
    _references(table, library)
    _places(table, library)
    _names(table, library)
    features = np.stack(list(table.columns.values()), axis=2).astype(float)
    return Table(list(table.columns), queries, candidates, features, labels.astype(float))
