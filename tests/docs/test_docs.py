"""What the documentation shows is run: doctests, shell sessions, and the README's code with its output."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from rankrls import load
from rankrls.cli import main
from rankrls.io import save_table, write_shards

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
IGNORED = ("_build", "gallery", "generated", "_templates")
PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.rst") if not set(path.relative_to(DOCS).parts) & {*IGNORED}
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Examples write files: into a folder of their own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_doctests(page: str) -> doctest.TestResults:
    report = StringIO()
    with redirect_stdout(report):
        found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert found.failed == 0, report.getvalue()
    return found


def console_sessions(text: str) -> list[tuple[str, str]]:
    """Commands of ``.. code-block:: console`` blocks, each with the output shown."""
    sessions = []
    for block in re.findall(r"\.\. code-block:: console\n\n((?:   .*\n|\n)+)", text + "\n"):
        lines = [line[3:] for line in re.sub(r" \\\n +", " ", block).rstrip("\n").split("\n")]
        for line in lines:
            if line.startswith("$ "):
                sessions.append((line[2:], ""))
            else:
                command, output = sessions[-1]
                sessions[-1] = (command, output + line + "\n")
    return sessions


def run_command(command: str) -> str:
    """What a command prints, run in this process; :mod:`tests.cli.test_process` starts the program itself."""
    words = shlex.split(command)
    assert words[0] == "rankrls"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words[1:])
    assert (status == 0) != ("error:" in err.getvalue()), err.getvalue()
    progress = r"(?m)^rankrls: .+: \d+ s\n"  # printed if a step takes more than three seconds
    return out.getvalue() + re.sub(progress, "", err.getvalue())


def assert_shown(shown: str, got: str) -> None:
    checker = doctest.OutputChecker()
    shown = re.sub(r"(?m)^\s*\.\.\.\s*$", "...", shown)
    assert checker.check_output(shown, got, FLAGS), f"shown:\n{shown}\ngot:\n{got}"


def run_page(page: str) -> None:
    """Its Python first, which may write what its commands read."""
    text = (DOCS / page).read_text("utf-8")
    if ">>>" in text:
        assert run_doctests(page).attempted > 0
    for command, shown in console_sessions(text):
        got = run_command(command)
        if shown.strip():
            assert_shown(shown, got)


WITH_COMMANDS = [page for page in PAGES if console_sessions((DOCS / page).read_text("utf-8"))]
WITH_PYTHON_ALONE = [page for page in PAGES if ">>>" in (DOCS / page).read_text("utf-8") and page not in WITH_COMMANDS]


@pytest.mark.parametrize("page", WITH_PYTHON_ALONE)
def test_python_examples(page, folder):
    run_page(page)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A folder with the files that these pages write: readers have them when they read others."""
    made = tmp_path_factory.mktemp("started")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        for page in ("start.rst", "guide/tables.rst"):
            run_page(page)
    return made


@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_python_and_shell_sessions(page, started, folder):
    if page != "start.rst":  # which ran where nothing was there before
        shutil.copytree(started, folder, dirs_exist_ok=True)
        run_page(page)


def test_sessions_are_found():
    assert len(WITH_COMMANDS) > 5


PUBLIC = "comparison export inspection io metrics model_selection persistence plots preprocessing streaming"


def test_every_public_name_is_in_the_reference():
    listed = set(re.findall(r"(?m)^   (\w+)$", (DOCS / "api.rst").read_text("utf-8")))
    for name in ("rankrls", *(f"rankrls.{part}" for part in PUBLIC.split())):
        assert {*import_module(name).__all__} - {"FORMAT_VERSION", "atomic_write"} <= listed


def test_readme_python_prints_what_the_readme_shows(folder):
    text = (ROOT / "README.md").read_text("utf-8")
    program, shown = re.findall(r"(?s)```python\n(.*?)```\n+(?:[^\n`]+\n+)*```text\n(.*?)```", text)[0]
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert out.getvalue() == shown


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of dask itself
def test_the_guide_to_dask(folder):
    dask = pytest.importorskip("dask")
    text = (DOCS / "guide" / "large_data.rst").read_text("utf-8")
    (program,) = (block for block in re.findall(r"(?m)(?:^   .*\n|^\n)+", text) if "rankrls.dask" in block)
    rng = np.random.default_rng(0)
    save_table("rows.csv", rng.normal(size=(90, 3)), rng.integers(0, 3, 90), np.arange(90) // 6, ids=np.arange(90))
    write_shards("rows.csv", "shards", rows_per_file=30)
    with dask.config.set(scheduler="threads"):
        names = {"__name__": "guide"}
        exec(compile(dedent(program), "large_data.rst", "exec"), names)
        assert names["scores"].compute().shape == (90,)
    assert load("model.rankrls").n_features_in_ == 3


def test_readme_commands(started, folder):
    """On the guide's table, and on its LETOR files."""
    shutil.copytree(started, folder, dirs_exist_ok=True)
    head, *train = Path("shop_train.csv").read_text("utf-8").splitlines(keepends=True)
    test = Path("shop_test.csv").read_text("utf-8").splitlines(keepends=True)[1:]
    Path("shop.csv").write_text("".join([head, *train, *test]), "utf-8")
    for name in ("vali.txt", "new.txt"):
        shutil.copy("test.txt", name)
    blocks = re.findall(r"(?s)```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"))
    commands = re.findall(r"(?m)^\$ (rankrls .*)$", re.sub(r" \\\n +", " ", "".join(blocks)))
    assert len(commands) == 7
    for command in commands:
        if "lightgbm.txt" in command:
            rows = Path("parts/test.csv").read_text("utf-8").count("\n") - 1
            np.savetxt("lightgbm.txt", np.arange(rows))
        assert "error:" not in run_command(command)


def test_readme_names_no_missing_file():
    text = (ROOT / "README.md").read_text("utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / target).exists(), target
