"""What the documentation shows is run: doctests, shell sessions, and the README's code with its output."""

from __future__ import annotations

import doctest
import re
import shutil
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from tests.docs.sessions import DOCS, ROOT, assert_shown, console_sessions, run_command, run_doctests

IGNORED = ("_build", "gallery", "generated", "_templates")
PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.rst") if not set(path.relative_to(DOCS).parts) & {*IGNORED}
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Examples write files: into a folder of their own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_page(page: str) -> None:
    """Its Python first, which may write what its commands read."""
    text = (DOCS / page).read_text("utf-8")
    if ">>>" in text:
        assert run_doctests(page).attempted > 0
    for command, shown in console_sessions(text):
        got = run_command(command)
        assert ("rankrls: error:" in got) == ("rankrls: error:" in shown), got
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
    pages = [path.read_text("utf-8") for path in (DOCS / "api").glob("*.rst")]
    listed = set(re.findall(r"(?m)^   (\w+)$", "".join(pages)))
    for name in ("rankrls", *(f"rankrls.{part}" for part in PUBLIC.split())):
        assert {*import_module(name).__all__} - {"FORMAT_VERSION", "atomic_write"} <= listed


def test_readme_python_prints_what_the_readme_shows(folder):
    text = (ROOT / "README.md").read_text("utf-8")
    program, shown = re.findall(r"(?s)```python\n(.*?)```\n+(?:[^\n`]+\n+)*```text\n(.*?)```", text)[0]
    out = StringIO()
    with redirect_stdout(out):
        exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert out.getvalue() == shown


def python_blocks(page: str) -> list[tuple[int, str]]:
    """Each ``code-block:: python`` of a page, with where it begins."""
    text = (DOCS / page).read_text("utf-8")
    found = re.finditer(r"(?m)^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    return [(block.start(), dedent(block[1])) for block in found]


BLOCKS = [(page, number) for page in PAGES for number in range(len(python_blocks(page)))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")  # of dask
@pytest.mark.parametrize(("page", "number"), BLOCKS)
def test_python_blocks(page, number, folder):
    """Each runs after the interactive examples above it; what cannot be installed here is skipped."""
    start, program = python_blocks(page)[number]
    for module in re.findall(r"(?m)^(?:import|from) (\w+)", program):
        pytest.importorskip(module)
    above = (DOCS / page).read_text("utf-8")[:start]
    names = {"__name__": "guide"}
    for example in doctest.DocTestParser().get_examples(above):
        exec(compile(example.source, page, "exec"), names)
    exec(compile(program.replace('"cuda"', '"cpu"'), page, "exec"), names)


def test_python_blocks_are_found():
    assert len(BLOCKS) > 3


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
        assert "rankrls: error:" not in run_command(command)
