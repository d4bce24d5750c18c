"""Everything that writes: commands and functions, each with two results that can be told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["WRITERS", "Writer", "make_inputs"]

Content = Any


@dataclass(frozen=True)
class Writer:
    """Something that writes a file or a folder.

    Attributes
    ----------
    name : str
    argv : callable
        Its arguments, of the target and of 0 or 1: which of the two results it is to write.
    target : str
        A name.
    content : callable
        What tells the two results from each other and from anything else; raises if the target is none of the kind.
    """

    name: str
    argv: Callable[[str, int], list[str]]
    target: str
    content: Callable[[Path], Content]

    @property
    def is_command(self) -> bool:
        """Whether it runs as ``rankrls`` does, below a supervisor."""
        return self.argv("", 0)[0] != "python"


def _bytes(path: Path) -> Content:
    return path.read_bytes()


def _folder(path: Path) -> Content:
    files = sorted(p for p in path.rglob("*") if p.is_file())
    if not files:
        raise ValueError("an empty folder")
    return [(str(p.relative_to(path)), p.read_bytes()) for p in files]


def _model(path: Path) -> Content:
    from rankrls import load

    model = load(path)
    return float(model.alpha_), np.asarray(model.coef_).tobytes()


def _page(path: Path) -> Content:
    text = path.read_text()
    if not text.rstrip().endswith("</html>"):
        raise ValueError("the page has no end")
    return "Title 0" in text, "Title 1" in text


def update(model: str, target: str) -> None:
    """Teach a model another query and save it."""
    from rankrls import load, save
    from rankrls.io import load_letor

    table, learned = load_letor("test.txt"), load(model)
    learned.partial_fit(table.X, table.y, qid=table.qid)
    save(learned, target)


def tables(data: str, target: str) -> None:
    """Write a table."""
    from rankrls.io import load_letor, save_table

    table = load_letor(data)
    save_table(target, table.X, table.y, table.qid)


def letor(data: str, target: str) -> None:
    """Write LETOR text."""
    from rankrls.io import load_letor, save_letor

    table = load_letor(data)
    save_letor(target, table.X, table.y, table.qid)


_MODELS, _DATA = ("a.rankrls", "b.rankrls"), ("train.txt", "test.txt")
_JSON = ["--format", "json", "--names", "names.txt", "-q"]
_FIT = ["fit", "train.txt", "-q", "-m"]

WRITERS = (
    Writer("fit", lambda to, k: [*_FIT, to, "--alphas", f"{k + 1}"], "m.rankrls", _model),
    Writer(
        "fit --method cg", lambda to, k: [*_FIT, to, "--method", "cg", "--alphas", f"{k + 1}"], "cg.rankrls", _model
    ),
    Writer("update", lambda to, k: ["python", "attack.writers:update", _MODELS[k], to], "u.rankrls", _model),
    *(
        Writer(f"convert {end}", lambda to, k: ["convert", _DATA[k], to, "-q"], f"c.{end}", _bytes)
        for end in ("txt", "csv", "csv.gz", "parquet", "arrow")
    ),
    *(
        Writer(
            f"convert shards{how}",
            lambda to, k, how=how: ["convert", _DATA[k], to, "-q", "--rows-per-file", "90", *how.split()],
            f"shards{how[-4:]}",
            _folder,
        )
        for how in ("", " --sort")
    ),
    *(
        Writer(f"predict {end}", lambda to, k: ["predict", _MODELS[k], "test.txt", "-q", "-o", to], f"s.{end}", _bytes)
        for end in ("txt", "csv", "parquet")
    ),
    Writer("rank", lambda to, k: ["rank", _MODELS[k], "test.txt", "-q", "-o", to], "r.tsv", _bytes),
    Writer("export", lambda to, k: ["export", _MODELS[k], to, *_JSON], "e.json", _bytes),
    Writer(
        "compare --html",
        lambda to, k: ["compare", "test.txt", *_MODELS, "-q", "--title", f"Title {k}", "--html", to],
        "page.html",
        _page,
    ),
    Writer("split", lambda to, k: ["split", "train.txt", to, "-q", "--seed", f"{k}"], "parts", _folder),
    Writer(
        "split --folds",
        lambda to, k: ["split", "train.txt", to, "-q", "--folds", "3", "--seed", f"{k}"],
        "folds",
        _folder,
    ),
    Writer("save_table", lambda to, k: ["python", "attack.writers:tables", _DATA[k], to], "t.csv", _bytes),
    Writer("save_letor", lambda to, k: ["python", "attack.writers:letor", _DATA[k], to], "t.txt", _bytes),
)


def make_inputs(folder: Path) -> None:
    """What the writers read."""
    from rankrls import RankRLS, save
    from rankrls.io import save_letor

    rng = np.random.default_rng(0)
    (folder / "names.txt").write_text("".join(f"f{k}\n" for k in range(6)))
    for start, (name, queries) in enumerate({"train.txt": 30, "test.txt": 40, "many.txt": 120}.items()):
        X, qid = rng.normal(size=(queries * 10, 6)), np.repeat(1000 * start + np.arange(queries), 10)
        y = np.digitize(X[:, 0] + rng.normal(size=len(X)), [0.0, 1.0])
        save_letor(folder / name, X, y, qid)
        if name == "train.txt":
            for alpha, model in zip((1.0, 10.0), ("a", "b"), strict=True):
                learned = RankRLS(alpha, solver="primal").fit(X, y, qid=qid)
                save(learned, folder / f"{model}.rankrls")
