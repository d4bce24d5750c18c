"""The extensions of the documentation: descriptions "as in" elsewhere, and the reference of the command line."""

import importlib
import inspect
import re

import pytest
from tests.docs.sessions import DOCS

import rankrls
from rankrls.cli._program import root


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    return importlib.import_module


def expand(module, value, parent=None):
    owners = module.owners_of(value, parent)
    return "\n".join(module.expanded(module.joined(inspect.getdoc(value)), owners))


def test_a_fit_that_refers_to_another_is_described_in_full(extension):
    text = expand(extension("inherited"), rankrls.RankRLSCV.fit)
    own = inspect.getdoc(rankrls.RankRLS.fit)
    for name in ("X", "y", "qid", "sample_weight", "position"):
        kind = re.search(rf"(?m)^{name} : .*", own)[0]
        assert text.count(kind) == 1
    assert "X_val" in text


def test_references_through_a_reference_and_what_follows_them(extension):
    text = expand(extension("inherited"), rankrls.SparseRankRLSCV)
    kernel = re.search(r"(?m)^gamma : (.*)", inspect.getdoc(rankrls.RankRLS))[1]
    assert re.search(rf"(?m)^gamma : {re.escape(kernel)}, or a tuple", text)


@pytest.mark.parametrize("name", sorted(set(rankrls.__all__) - {"InputError", "InputWarning"}))
def test_nothing_is_lost(name, extension):
    module = extension("inherited")
    value = getattr(rankrls, name)
    text = expand(module, value)
    described = {*re.findall(r"\w+", " ".join(re.findall(r"(?m)^(\w[\w, ]*) : ", text)))}
    before = "\n".join(module.joined(inspect.getdoc(value)))
    assert {*re.findall(r"\w+", " ".join(re.findall(r"(?m)^(\w[\w, ]*) : ", before)))} <= described


def test_every_command_and_option_is_in_the_reference(extension):
    sections = {}
    for line in extension("commands").reference():
        if found := re.fullmatch(r"\.\. program:: rankrls (\w+)", line):
            sections[found[1]] = options = []
        elif found := re.match(r"\.\. option:: (.*)", line):
            options += re.findall(r"--[\w-]+", found[1])
    assert {*sections} == {*root.commands}
    for name, command in root.commands.items():
        shown = {max(p.opts, key=len) for p in command.params if p.opts[0].startswith("-")}
        assert {*sections[name]} == shown


def test_names_of_one_description_may_take_several_lines(extension):
    module = extension("inherited")
    text = "Attributes\n----------\na_, b_,\nc_ : as in\n    :class:`RankRLS`\nd_ : int\n"
    assert module.joined(text)[2:4] == ["a_, b_, c_ : as in :class:`RankRLS`", "d_ : int"]


@pytest.mark.parametrize("name", sorted(set(rankrls.__all__) - {"InputError", "InputWarning"}))
def test_attributes_have_types(name, extension):
    module = extension("inherited")
    text = expand(module, getattr(rankrls, name))
    section = re.search(r"(?s)\nAttributes\n-+\n(.*?)(?:\n\n|$)", text)
    for line in section[1].splitlines() if section else ():
        assert line.startswith("    ") or " : " in line, line
