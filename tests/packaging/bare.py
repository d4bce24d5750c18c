"""What an installation with the core dependencies alone can do, and what it says of the rest.

Run by ``make package`` with the interpreter of a bare environment that holds the built wheel, and by the tests with
``--block``, which hides the optional packages of theirs. Needs no pytest, and nothing but its own folder.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

PARTS = [
    "comparison",
    "export",
    "inspection",
    "io",
    "metrics",
    "model_selection",
    "persistence",
    "plots",
    "preprocessing",
]
OPTIONAL = ("matplotlib", "onnx", "pandas", "polars")


class Hidden:
    """Finds none of the optional packages."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def check(truth: bool, what: str) -> None:
    """An assertion that stays under ``-O``."""
    if not truth:
        raise SystemExit(f"failed: {what}")


def command(*words: str, code: int = 0) -> str:
    """What the command line prints."""
    from rankrls.cli import main

    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        ended = main(words)
    check(ended == code, f"rankrls {' '.join(words)} ended with {ended}:\n{said.getvalue()}")
    return said.getvalue()


def some_queries() -> tuple:
    """Ten queries of eight rows."""
    import numpy as np

    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(80, 4)).round(3), np.repeat(np.arange(10), 8)
    return X, np.digitize(X @ [1.0, 0.5, 0.0, 0.0] + rng.normal(size=80), [0.5, 1.5]), qid


def core() -> None:
    """Every public name, a fit, a file and back."""
    import rankrls
    from rankrls import io

    for name in rankrls.__all__:
        getattr(rankrls, name)
    for part in PARTS:
        module = importlib.import_module(f"rankrls.{part}")
        for name in module.__all__:
            getattr(module, name)
    X, y, qid = some_queries()
    io.save_letor("train.txt", X, y, qid)
    model = rankrls.RankRLSCV().fit(X, y, qid=qid)
    rankrls.save(model, "from_python.rankrls")
    again = rankrls.load("from_python.rankrls")
    check(bool((again.predict(X) == model.predict(X)).all()), "a model comes back as it was")


def command_line() -> None:
    """From a file to a model, a ranking, a judgement, a report and an engine's model."""
    fitted = command("fit", "train.txt", "--model", "m.rankrls")
    check("Saved m.rankrls" in fitted, f"fit says what it saved:\n{fitted}")
    command("fit", "train.txt", "--set", "ties=exclude", "--model", "other.rankrls", "-q")
    command("predict", "m.rankrls", "train.txt", "--output", "scores.txt")
    command("evaluate", "--scores", "scores.txt", "train.txt", "--metrics", "map,ndcg@5")
    command("compare", "train.txt", "m.rankrls", "other.rankrls", "--html", "report.html")
    check("p values by Holm" in Path("report.html").read_text("utf-8"), "the report is a page of tables")
    Path("names.txt").write_text("a\nb\nc\nd\n")
    for table in ("train.csv", "train.parquet", "train.arrow"):
        command("convert", "train.txt", table)
        command("fit", table, "--qid", "qid", "--model", "of_table.rankrls", "-q")
    for engine in ("solr", "elasticsearch", "opensearch", "elasticsearch-query", "sql", "json"):
        command("export", "m.rankrls", f"{engine}.out", "--format", engine, "--names", "names.txt")
    command("info", "m.rankrls")


def refusals() -> None:
    """What is not installed is named, with the extra that brings it."""
    import rankrls
    from rankrls import export, plots

    X, y, qid = some_queries()
    model = rankrls.RankRLS().fit(X, y, qid=qid)
    for extra, run in {"onnx": export.to_onnx, "plots": plots.CoefficientsDisplay.from_estimator}.items():
        try:
            run(model)
        except ImportError as error:
            check(f"pip install 'rankrls[{extra}]'" in str(error), f"names the extra {extra}: {error}")
        else:
            check(False, f"{extra} is refused where it is not installed")
    said = command("export", "m.rankrls", "m.onnx", "--format", "onnx", code=2)
    check("rankrls[onnx]" in said.replace("\n", ""), f"the command names the extra:\n{said}")


def contents() -> None:
    """The installed distribution holds the package, its licence and its text, and nothing else."""
    found = importlib.metadata.distribution("rankrls")
    files = [str(file) for file in found.files or []]
    check(any(file.endswith("rankrls/py.typed") for file in files), "the package is marked as typed")
    check(any(file.endswith("licenses/LICENSE") for file in files), "the licence is inside")
    inside = {file.split("/")[0] for file in files if "__pycache__" not in file and not file.startswith("..")}
    check(inside == {"rankrls", f"rankrls-{found.version}.dist-info"}, f"nothing else is inside: {inside}")
    check(str(found.metadata["License-Expression"]) == "BSD-3-Clause", "the licence is named")
    text = found.metadata.get_payload() or found.metadata["Description"]
    check("# rankrls" in str(text), "the README is its description")


def main() -> None:
    blocked = "--block" in sys.argv
    if blocked:
        sys.meta_path.insert(0, Hidden())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        core()
        command_line()
        refusals()
        if not blocked:
            contents()
            script = Path(sys.executable).with_name("rankrls")
            done = subprocess.run([script, "info", "m.rankrls"], capture_output=True, encoding="utf-8")
            check(done.returncode == 0, f"the installed command runs: {done.stderr}")
        os.chdir("/")
    print("bare installation: all well")


if __name__ == "__main__":
    main()
