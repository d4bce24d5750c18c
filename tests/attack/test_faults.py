"""Every step at which a writer may be killed, signals and limits; and that the trials see what they look for."""

import json
import signal
import sys

import pytest
from attack.faults import Fault, interrupt, main, open_trials, too_large
from attack.writers import WRITERS, Writer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and file systems as Linux has them")

NAMES = ("fit", "update", "convert csv.gz", "convert shards --sort", "compare --html", "split")
SOME = {writer.name: writer for writer in WRITERS if writer.name in NAMES}


PLANTED = {
    "in_place": "torn",
    "forgets_its_temporary": "wrong",
    "does_nothing_the_second_time": "lost",
    "fails": "wrong",
    "hangs": "hung",
}


def planted(name):
    return Writer(
        name,
        lambda target, k: ["python", f"tests.attack.planted_faults:{name}", "ab"[k] * 60, target],
        f"{name}.txt",
        lambda path: path.read_text(),
    )


@pytest.fixture(scope="module")
def trials():
    with open_trials(0, writers=[*SOME.values(), *map(planted, PLANTED)]) as (found, _):
        (found.folder / "prepared").touch()
        yield found


@pytest.mark.parametrize("name", SOME)
def test_killed_at_every_step(name, trials):
    """The target is the old one or the new one, and the next run removes what the killed ones left."""
    step, status = 1, -signal.SIGKILL
    while status:
        status = trials.disturbed(SOME[name], step=step)[0]["status"]
        assert status in (0, -signal.SIGKILL)
        step += 1
    assert step > 5
    trials.whole_run(SOME[name])
    assert trials.left_behind() == []


@pytest.mark.parametrize("kind", [interrupt, too_large], ids=["signal", "too large"])
def test_some_of_the_trials(kind, trials):
    trials.findings.clear()  # those of another test
    for name in ("fit", "compare --html", "split"):
        for _ in range(4):
            trials.trial(kind.__name__, kind, SOME[name])
    assert trials.findings == []


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_found(name, trials):
    def attempt(trials, writer):
        for after in (0.03, 0.1, 0.3):  # it writes for as long, and begins when the machine lets it
            what = {"signal": signal.SIGKILL, "after": after} if name == "in_place" else {}
            answer, _ = trials.disturbed(writer, **what, limit=2.0)
            if name == "fails":
                trials.refused(answer["status"])
        if trials.left_behind():
            raise Fault("wrong", "left behind")
        return ""

    assert trials.trial("planted", attempt, planted(name)) == PLANTED[name]
    assert trials.findings.pop()["verdict"] == PLANTED[name]
    (trials.targets / f"{name}.txt.new").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_whole_run(tmp_path, capsys):
    path = tmp_path / "found.json"
    assert main(["--minutes", "0.05", "--seed", "1", "--kinds", "kill", "streams", "--json", str(path)]) == 0
    found = json.loads(path.read_text())
    assert found["seed"] == 1
    assert set(found["kinds"]) == {"kill", "streams", "next write"}
    assert "slowest" in capsys.readouterr().out
