"""Signals: whatever a command is doing it ends, and leaves whole files and nothing else."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc as Linux has them")

SOON = 10.0  # on a machine that does nothing else it is less than one; what is stuck is so for longer

# A sum of numbers is one step, which holds the interpreter's lock as scipy's decompositions do: no handler runs in it.
STUCK = """
import signal, sys, time
from rankrls.cli import _run, main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started the tests with & had it ignored
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup this one
where, run = sys.argv.pop(1), _run.run

def compute(*_, **__):
    print("stuck", flush=True)
    sum(range(2 * 10**9))

def save(command, **given):
    from rankrls.io._atomic import atomic_write
    with atomic_write(given["save"]) as file:
        file.write(b"half")
        compute()

class Stuck:
    def __del__(self):
        print("stuck", flush=True)
        time.sleep(1)

def forget(*_, **__):
    Stuck()
    time.sleep(20)

def run_until_it_is_stuck(argv):
    if where == "fitting":
        from rankrls.cli import _training
        _training._fit = compute
    else:  # before anything is imported, which takes longer than all the rest
        _run._carry_out = {"computing": compute, "saving": save, "forgetting": forget}[where]
    return run(argv)

_run.run = run_until_it_is_stuck
sys.exit(main())
"""


def start_stuck(where, *argv):
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, where, "fit", *map(str, argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "stuck\n", process.stderr.read()
    time.sleep(0.1)  # between the word and the call that hears nothing a signal would still be heard
    return process


def ended(process):
    """Seconds until it ends, and its standard error; the worker holds the pipe too, so that it has ended as well."""
    begin = time.perf_counter()
    try:
        err = process.communicate(timeout=30)[1]
    finally:
        process.kill()
    return time.perf_counter() - begin, err


@pytest.mark.parametrize("where", ["computing", "saving"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL], ids=lambda n: n.name)
def test_a_signal_while_compiled_code_runs(number, where, files):
    (files / "m.rankrls").write_text("old")
    before = sorted(os.listdir(files))
    process = start_stuck(where, files / "train.txt", "-m", files / "m.rankrls")
    assert (where == "saving") == (len(os.listdir(files)) > len(before))
    process.send_signal(number)
    seconds, err = ended(process)
    assert seconds < SOON
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert err == ("rankrls: interrupted\n" if number == signal.SIGINT else "")
    assert (files / "m.rankrls").read_text() == "old"
    if number != signal.SIGKILL:
        assert sorted(os.listdir(files)) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_where_python_drops_what_a_handler_raises(number, files):
    process = start_stuck("forgetting", files / "train.txt", "-m", files / "m.rankrls")
    os.killpg(process.pid, number)
    seconds, err = ended(process)
    assert seconds < SOON
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert err == ("rankrls: interrupted\n" if number == signal.SIGINT else "")


def test_a_second_interruption_does_not_wait_for_a_model_that_would_be_kept(files):
    argv = (files / "train.txt", "-m", files / "m.rankrls", "--method", "cg")
    process = start_stuck("fitting", *argv)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.5)
    process.send_signal(signal.SIGINT)
    seconds, err = ended(process)
    assert seconds < SOON
    assert (process.returncode, err) == (130, "rankrls: interrupted\n")
    assert not (files / "m.rankrls").exists()


@pytest.mark.parametrize("argv", [["fit", "-m", "m"], ["--version"], ["info", "m"]], ids=lambda v: v[0])
def test_the_status_of_the_command_is_that_of_the_program(argv, tmp_path):
    done = subprocess.run([sys.executable, "-m", "rankrls", *argv], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == (0 if argv == ["--version"] else 2)


def test_a_command_that_is_killed_takes_the_program_with_it():
    code = "import os, sys; from rankrls.cli import _run, main; _run.run = lambda _: os.kill(os.getpid(), 9); main()"
    done = subprocess.run([sys.executable, "-c", code], timeout=60)
    assert done.returncode == -signal.SIGKILL


def test_who_ignores_an_interruption_is_not_interrupted(files):
    """As behind ``nohup``, or in the background of a script."""
    argv = [sys.executable, "-m", "rankrls", "fit", files / "train.txt", "-m", files / "m.rankrls", "-q"]
    line = 'trap "" INT HUP; echo ignored; exec "$@"'
    with subprocess.Popen(["sh", "-c", line, "sh", *argv], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ignored\n"
        for _ in range(4):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
