"""A small part of the attack that is always the same, and that a campaign sees what it looks for."""

import json
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
from attack.campaign import BAD, ROOT, find, generator, run, verdict_of
from attack.fuzz import TARGETS

from attack import fuzz
from tests.processes import processes

CASES = {"letor": 60, "tables": 100, "numerics": 25, "commands": 25}
CORPUS = ROOT / "attack" / "corpus"


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


def test_a_campaign_finds_faults_of_every_kind():
    tally = run("tests.attack.planted:TARGET", 5, cases=9)
    assert dict(tally.counts) == {"read": 2, "refused": 1, "hang": 1, "crash": 3, "wrong": 1, "unclear": 1}
    whats = " ".join(finding.what for finding in tally.findings)
    for word in ("no answer in 2 s", "SIGSEGV", "MemoryError", "InputError", "1 and 2"):
        assert word in whats
    assert len(tally.findings) == 6


def test_the_same_seed_gives_the_same_cases():
    for name in TARGETS:
        target = find(TARGETS[name])
        one, two, other = (target.make(generator(name, seed, 3)) for seed in (1, 1, 2))
        assert one == two
        assert one != other


def test_the_table_and_its_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "planted", "tests.attack.planted:TARGET")
    out = tmp_path / "table.json"
    limits = ["--seed", "1", "--first", "4", "--cases", "1", "--json", str(out)]
    assert fuzz.main(["--targets", "planted", *limits]) == 1
    printed = capsys.readouterr().out
    assert "seed 1" in printed
    assert printed.splitlines()[-1].split()[:8] == ["planted", "1", "0", "0", "1", "0", "0", "0"]
    line = json.loads(out.read_text())["targets"][0]
    assert (line["inputs"], line["counts"]["wrong"], line["counts"]["read"]) == (1, 1, 0)
    assert "wrong: 1 and 2 (again: --targets planted --seed 1 --first 4 --cases 1)" in printed
