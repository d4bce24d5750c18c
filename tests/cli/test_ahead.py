"""What is compiled on a second processor is what the first command needs, and no other command starts a process."""

import contextlib
import gc
import os
import subprocess
import sys

import pytest

from rankrls.cli.startup import ahead

LOOP = "pair_counts._count-1.py311.nbi"


@pytest.fixture
def started(monkeypatch):
    """Processes that would have been started."""
    commands = []

    class Process:
        def __init__(self, command, **_):
            commands.append(command)

        def kill(self):
            commands.append("kill")

        def wait(self):
            commands.append("wait")

    monkeypatch.setattr(ahead.subprocess, "Popen", Process)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    return commands


def test_the_first_choice_starts_a_process_and_ends_it(started, monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    usual = gc.get_threshold()
    with contextlib.suppress(KeyboardInterrupt), ahead.compiling_ahead("fit"):
        assert started == [[sys.executable, "-m", "rankrls.cli.startup.ahead"]]
        assert gc.get_threshold()[0] > usual[0]
        raise KeyboardInterrupt
    assert started[1:] == ["kill", "wait"]
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("case", ["compiled", "one processor", "another command", "not compiled at all"])
def test_no_other_command_does(started, monkeypatch, tmp_path, case):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    if case == "compiled":
        (tmp_path / "package").mkdir()
        (tmp_path / "package" / LOOP).touch()
    elif case == "one processor":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    elif case == "not compiled at all":
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    usual = gc.get_threshold()
    with ahead.compiling_ahead("predict" if case == "another command" else "cv"):
        assert started == []
        assert (gc.get_threshold() == usual) == (case != "one processor")  # which compiles it all itself


@pytest.mark.slow
def test_what_is_compiled_ahead_is_what_a_fit_needs(tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("".join(f"{row % 3} qid:{row // 5} 1:{row % 7} 2:{row % 4}\n" for row in range(60)))
    cache = tmp_path / "cache"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    run = lambda *words: subprocess.run([sys.executable, "-m", *words], env=environment, check=True)
    loops = lambda: {path.name for path in cache.glob("*/*.nbc")}
    run("rankrls.cli.startup.ahead")
    ahead = loops()
    assert any(name.startswith("pair_counts._count-") for name in ahead)  # as _ahead looks for it
    run("rankrls", "fit", str(data), "--model", str(tmp_path / "m"), "--scale", "minmax", "--metric", "map", "--quiet")
    assert {name for name in loops() - ahead if not name.startswith(("_parse.", "_decimal."))} == set()
