"""A small part of the fuzzing that is always the same, and that a campaign sees what it looks for."""

import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
from fuzzing.campaign import BAD, ROOT, find, generator, run, verdict_of
from fuzzing.fuzz import TARGETS

from tests.processes import processes

CASES = {"letor": 60, "tables": 100, "numerics": 25, "commands": 25, "clicks": 40}
CORPUS = ROOT / "fuzzing" / "corpus"


@pytest.mark.parametrize("name", CASES)
def test_the_first_cases(name):
    target = find(TARGETS[name])
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(CASES[name]):
            verdict, what = verdict_of(target, target.make(generator(target.name, 0, number)))
            found.setdefault(verdict, []).append((number, what))
    assert not {verdict: found[verdict] for verdict in BAD if verdict in found}
    assert found["read"]  # a target that reads nothing, or refuses nothing, tests one half only
    assert found["refused"]


def test_the_first_model_files():
    tally = run(TARGETS["models"], 0, cases=150)
    assert [finding.what for finding in tally.findings] == []
    assert tally.inputs == 150
    assert min(tally.counts["read"], tally.counts["refused"]) > 0


def judged(name, paths):
    """The verdicts of inputs."""
    target = find(TARGETS[name])
    warnings.simplefilter("ignore")
    target.warm_up()
    return [verdict_of(target, path.read_bytes()) for path in paths]


@pytest.mark.parametrize("name", sorted(folder.name for folder in CORPUS.iterdir()))
def test_the_corpus(name):
    """Inputs that a fuzzer guided by coverage kept, and inputs that once went wrong."""
    paths = sorted((CORPUS / name).iterdir())
    with ProcessPoolExecutor(1, mp_context=processes()) as pool:  # an input may end its process
        verdicts = pool.submit(judged, name, paths).result()
    assert {path.name: found for path, found in zip(paths, verdicts, strict=True) if found[0] in BAD} == {}
