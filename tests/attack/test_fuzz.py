"""A small part of the attack that is always the same, and that a campaign sees what it looks for."""

import json
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from io import StringIO

import pytest
from attack.campaign import BAD, ROOT, find, generator, run, verdict_of
from attack.fuzz import TARGETS

from attack import fuzz
from tests.processes import processes

CASES = {"letor": 60, "tables": 100, "numerics": 25}
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


def test_the_first_model_files(tmp_path):
    tally = run(TARGETS["models"], 0, tmp_path, cases=150)
    assert [finding.what for finding in tally.findings] == []
    assert tally.inputs == 150
    assert min(tally.counts["read"], tally.counts["refused"]) > 0


def replayed(name, inputs):
    """The exit code of the attack, and what it prints."""
    out = StringIO()
    with redirect_stdout(out):
        status = fuzz.main(["--folder", str(CORPUS / name), "--replay", name, *inputs])
    return status, out.getvalue().splitlines()


@pytest.mark.parametrize("name", sorted(folder.name for folder in CORPUS.iterdir()))
def test_the_corpus(name):
    """Inputs that a fuzzer guided by coverage kept, and inputs that once went wrong."""
    paths = sorted((CORPUS / name).iterdir())
    with ProcessPoolExecutor(1, mp_context=processes()) as pool:  # an input may end its process
        status, verdicts = pool.submit(replayed, name, [path.name for path in paths]).result()
    assert [line for line in verdicts if line.split(": ")[1] in BAD] == []
    assert (len(verdicts), status) == (len(paths), 0)


def test_a_campaign_finds_faults_of_every_kind(tmp_path):
    tally = run("tests.attack.planted:TARGET", 5, tmp_path, cases=11)
    assert dict(tally.counts) == {"read": 2, "refused": 1, "hang": 1, "crash": 3, "wrong": 3, "unclear": 1}
    whats = " ".join(finding.what for finding in tally.findings)
    for word in ("no answer in 2 s", "SIGSEGV", "MemoryError", "InputError", "1 and 2", "subprocess.Popen", "open"):
        assert word in whats
    kept = [path for path in tmp_path.iterdir() if path.suffix != ".txt"]
    assert len(kept) == len(tally.findings) == 8
    assert all("--replay planted" in path.with_suffix(".txt").read_text() for path in kept)


def test_the_same_seed_gives_the_same_cases():
    for name in TARGETS:
        target = find(TARGETS[name])
        one, two, other = (target.make(generator(name, seed, 3)) for seed in (1, 1, 2))
        assert one == two
        assert one != other


def test_the_table_and_its_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "planted", "tests.attack.planted:TARGET")
    folder, out = tmp_path / "found", tmp_path / "table.json"
    limits = ["--seed", "1", "--first", "4", "--cases", "1", "--folder", str(folder), "--json", str(out)]
    assert fuzz.main(["--targets", "planted", *limits]) == 1
    printed = capsys.readouterr().out
    assert "seed 1" in printed
    assert printed.splitlines()[-1].split()[:8] == ["planted", "1", "0", "0", "1", "0", "0", "0"]
    line = json.loads(out.read_text())["targets"][0]
    assert (line["inputs"], line["counts"]["wrong"], line["counts"]["read"]) == (1, 1, 0)
    assert fuzz.main(["--folder", str(folder), "--replay", "planted", line["findings"][0]["file"]]) == 1
    assert "wrong: 1 and 2" in capsys.readouterr().out
