"""The files beside the sources: links, folders, citation and workflow agree with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import rankrls

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "comparisons", "docs", "examples", "fuzzing", "papers", "tests")
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    *(ROOT / f / "README.md" for f in FOLDERS),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def anchors(page: Path) -> set[str]:
    """The addresses of the headings of a Markdown page, as code hosts make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text("utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", page.read_text("utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_folders_say_what_they_are():
    for folder in FOLDERS:
        text = (ROOT / folder / "README.md").read_text("utf-8")
        assert {"Purpose", "Minutes", "Data"} <= {*re.findall(r"\*\*(\w+)\.\*\*", text)}, folder


def test_the_citation_is_of_this_version_and_of_the_papers():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == rankrls.__version__ == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    cited = " ".join((ROOT / "README.md").read_text("utf-8").split())
    for paper in citation["references"]:
        names = ", ".join(author["family-names"] for author in paper["authors"])
        assert f"{names}: *{paper['title']}.*" in cited


def test_the_workflow_runs_everything_on_each_version_of_python():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text("utf-8"))
    job = workflow["jobs"]["check"]
    assert ".ci/run" in [step.get("run") for step in job["steps"]]
    supported = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", c)]
    assert job["strategy"]["matrix"]["python"] == supported
