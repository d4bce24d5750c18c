"""Signals: whatever a command is doing it ends, and leaves whole files and nothing else."""

import os
import signal
import subprocess
import sys
import time
from itertools import chain

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc as Linux has them")

SOON = 3.0  # on a machine that does nothing else it is less than one

# A sum of numbers is one step, which holds the interpreter's lock as scipy's decompositions do: no handler runs in it.
STUCK = """
import signal, sys
from rankrls.cli import _run, main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started the tests with & had it ignored
where, run = sys.argv.pop(1), _run.run

def compute(*_):
    print("stuck", flush=True)
    sum(range(2 * 10**9))

def save(model, path, **_):
    from rankrls.io import atomic_write
    with atomic_write(path) as file:
        file.write(b"half")
        compute()

def run_until_it_is_stuck(argv):
    from rankrls import persistence
    from rankrls.cli import _training
    if where == "fitting":
        _training._fit = compute
    else:
        persistence.save = save
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
    )
    assert process.stdout.readline() == "stuck\n", process.stderr.read()
    time.sleep(0.5)  # between the word and the call that hears nothing a signal would still be heard
    return process


def ended(process):
    """Seconds until it ends, and its standard error; the worker holds the pipe too, so that it has ended as well."""
    begin = time.perf_counter()
    try:
        err = process.communicate(timeout=30)[1]
    finally:
        process.kill()
    return time.perf_counter() - begin, err


@pytest.mark.parametrize("where", ["fitting", "saving"])
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


@pytest.mark.parametrize("argv", [["fit", "none.txt", "-m", "m"], ["--version"], ["info", "m"]], ids=lambda v: v[0])
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
    process = subprocess.Popen(["sh", "-c", 'trap "" INT HUP; exec "$@"', "sh", *argv])
    for _ in range(4):
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGHUP)
    assert process.wait(60) == 0


# Children of one process that has imported everything: kill -9 at a moment, or at the n-th step that touches a file.
KILLED = """
import os, random, signal, sys, time
from rankrls.cli import main

random_moments, argv = int(sys.argv[1]), sys.argv[2:]
STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir")
folder = os.path.dirname(argv[1])

def child(step):
    pid = os.fork()
    if pid:
        return pid
    seen = 0
    def hook(event, args):
        nonlocal seen
        if event in STEPS and (event != "open" or str(args[0]).startswith(folder)):
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    os._exit(main([*argv, "--seed", str(random.randrange(1000))] if argv[0] == "split" else argv))

def wait(pid):
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(status, flush=True)
    input()  # the state is looked at
    return status

random.seed(7)
main(argv)
begin = time.perf_counter()
wait(child(None))
seconds = time.perf_counter() - begin
for _ in range(random_moments):
    pid = child(None)
    time.sleep(random.uniform(0.2, 1.1) * seconds)
    os.kill(pid, signal.SIGKILL)
    wait(pid)
step = 1
while wait(child(step)):
    step += 1
print("end", flush=True)
"""


def killed_again_and_again(check, *argv, moments=8):
    """Run a command again and again, and kill it; check what it leaves. Returns how often it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(moments), *map(str, argv)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    kills = 0
    with process:
        while (line := process.stdout.readline()) != "end\n":
            assert line in ("0\n", "-9\n")
            kills += line == "-9\n"
            check()
            process.stdin.write("\n")
            process.stdin.flush()
    return kills


@pytest.mark.parametrize("shape", ["parts", "folds"])
def test_parts_of_a_killed_split_are_never_mixed(shape, files):
    folder, whole = files / "parts", sorted((files / "train.txt").read_text().splitlines())
    names = {"train.txt", "vali.txt", "test.txt"}
    expected = names if shape == "parts" else {f"Fold{k}/{name}" for k in (1, 2, 3) for name in names}

    def check():
        there = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
        assert there in (set(), expected)
        for part in sorted(folder.glob("Fold*")) or [folder]:
            if part.exists():
                assert sorted(chain(*((part / name).read_text().splitlines() for name in names))) == whole

    before = {*os.listdir(files), "parts"}
    folds = ("--folds", "3") if shape == "folds" else ()
    kills = killed_again_and_again(check, "split", files / "train.txt", folder, "-q", *folds)
    assert kills > 20
    check()
    assert folder.exists()
    assert set(os.listdir(files)) == before  # the last run has removed what the killed ones had left


def test_the_model_of_a_killed_fit_is_the_old_one_or_the_new_one(files):
    model = files / "m.rankrls"
    argv = ("fit", files / "train.txt", "-m", model, "-q", "--alphas", "1")

    def check():
        assert model.read_bytes()[-22:-18] == b"PK\x05\x06"  # how a whole file of this kind ends

    before = {*os.listdir(files), "m.rankrls"}
    assert killed_again_and_again(check, *argv, moments=6) > 5
    assert set(os.listdir(files)) == before
