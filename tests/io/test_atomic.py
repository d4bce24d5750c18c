"""What replaces a file: its owner and bits, what killed writers leave, and what is written to in place."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import RankRLS, _temporary, load, save
from rankrls.cli import main
from rankrls.io import atomic_write

posix = pytest.mark.skipif(os.name != "posix", reason="owners, pipes and devices as POSIX has them")
root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")


def write(path, text="new"):
    with atomic_write(path, "w") as file:
        file.write(text)


def what(path):
    status = os.stat(path)
    return status.st_uid, status.st_gid, oct(stat.S_IMODE(status.st_mode))


def as_somebody(uid, groups, action):
    """Run an action as another user, in a process of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups(groups)
            os.setgid(groups[0])
            os.setuid(uid)
            action()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def shared():
    """A folder in which everybody may write, and that everybody can reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@root
@posix
def test_owner_group_and_bits_are_kept_by_who_may(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    os.chown(path, 4321, 5432)
    path.chmod(0o6754)
    write(path)
    assert what(path) == (4321, 5432, oct(0o6754))
    assert path.read_text() == "new"


@root
@posix
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize(
    ("groups", "left"),
    [([5432], (1234, 5432, oct(0o754))), ([999, 5432], (1234, 5432, oct(0o754))), ([999], (1234, 999, oct(0o754)))],
    ids=["own group", "further group", "other group"],
)
def test_a_new_owner_does_not_get_the_bits_of_the_old_one(groups, left, shared):
    path = shared / "x"
    path.write_text("old")
    os.chown(path, 4321, 5432)
    path.chmod(0o6754)
    as_somebody(1234, groups, lambda: write(path))
    assert what(path) == left


@posix
def test_the_owner_keeps_the_bits(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o4751)
    write(path)
    assert what(path)[2] == oct(0o4751)


@posix
def test_what_replaces_a_private_file_is_private_from_the_start(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o600)
    with atomic_write(path):
        modes = [stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in os.listdir(tmp_path)]
    assert modes == [0o600, 0o600]


def kill_while_writing(path, *, text="half"):
    code = (
        "import os, sys\n"
        "from rankrls.io import atomic_write\n"
        "with atomic_write(sys.argv[1], 'w') as file:\n"
        f"    file.write({text!r}); file.flush()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -signal.SIGKILL


@posix
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path):
    name = "ü" * 60 + "\udcff.txt"
    path, other = tmp_path / name, tmp_path / "other.txt"
    kill_while_writing(os.fsencode(path).decode("utf-8", "surrogateescape"))
    kill_while_writing(other)
    assert len(os.listdir(tmp_path)) == 2
    write(path)
    assert len(os.listdir(tmp_path)) == 2  # what belongs to another target stays
    write(other)
    assert sorted(os.listdir(tmp_path)) == ["other.txt", name]


@posix
def test_what_looks_abandoned_and_is_not(tmp_path, monkeypatch):
    path = tmp_path / "x"
    (tmp_path / ".x.tmp").write_text("of somebody else")
    (tmp_path / ".x.0123abcd.tmp").write_text("of somebody else")
    with atomic_write(path, "w") as first:
        first.write("first")
        write(path, "second")  # a concurrent writer
        assert len(os.listdir(tmp_path)) == 4
    assert path.read_text() == "first"
    kill_while_writing(path)
    with monkeypatch.context() as patch:  # locks need not be seen from another machine
        patch.setattr(_temporary, "_machine", lambda: "00000000")
        write(path)
        assert len(os.listdir(tmp_path)) == 4
    with monkeypatch.context() as patch:  # nor does every file system have them

        def flock(*_):
            raise OSError(95, "Operation not supported")

        patch.setattr(_temporary.fcntl, "flock", flock)
        write(path)
        assert len(os.listdir(tmp_path)) == 4
    write(path)
    assert sorted(os.listdir(tmp_path)) == [".x.0123abcd.tmp", ".x.tmp", "x"]


@posix
def test_links_and_pipes_of_such_a_name_are_left_alone(tmp_path):
    """Somebody else may put them into a folder that is shared, to have a file removed or a writer wait."""
    path, secret = tmp_path / "x", tmp_path / "secret"
    secret.write_text("secret")
    name = f".x.{_temporary._machine()}.0123456789ab.tmp"
    (tmp_path / name).symlink_to(secret)
    write(path)
    assert secret.read_text() == "secret"
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    write(path)
    assert path.read_text() == "new"


def test_many_writers_at_once(tmp_path):
    path, barrier = tmp_path / "x", threading.Barrier(8)

    def often(k):
        barrier.wait()
        for _ in range(25):
            write(path, f"{k}" * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(often, range(8)))
    assert path.read_text() in {f"{k}" * 1000 for k in range(8)}
    assert os.listdir(tmp_path) == ["x"]


@posix
def test_devices_are_written_to(tmp_path):
    before = os.stat(os.devnull)
    write(os.devnull)
    (tmp_path / "link").symlink_to(os.devnull)
    write(tmp_path / "link")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert os.stat(os.devnull).st_ino == before.st_ino
    if os.path.exists("/dev/full"):
        with Refusal("No space", kind=OSError) as caught:
            write("/dev/full")
        assert caught.value.filename == "/dev/full"


@posix
def test_pipes_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write(pipe)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    reader, writer = os.pipe()
    write(f"/dev/fd/{writer}")
    os.close(writer)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    with Refusal("Bad file", kind=OSError) as caught:
        write(f"/dev/fd/{writer}")
    assert caught.value.filename == f"/dev/fd/{writer}"


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "link"])
def test_standard_output_is_continued(name, tmp_path):
    """A shell has opened the file, and others write to it before and after."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = (
        "import sys; from rankrls.io import atomic_write\nwith atomic_write(sys.argv[1], 'w') as f: f.write('new\\n')"
    )
    command = f"(echo before; '{sys.executable}' -c \"$CODE\" {name}; echo after) > out"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env={**os.environ, "CODE": code}, check=True)
    assert (tmp_path / "out").read_text() == "before\nnew\nafter\n"


@posix
@pytest.mark.parametrize("command", ["fit", "predict", "rank", "convert"])
def test_commands_write_to_devices(command, tmp_path, capsys):
    rows = "".join(f"{k % 2} qid:{k // 4} 1:{k * 7 % 11}\n" for k in range(24))
    (tmp_path / "train.txt").write_text(rows)
    data, model = str(tmp_path / "train.txt"), str(tmp_path / "m")
    assert main(["fit", data, "-m", model, "-q"]) == 0
    argv = {"fit": [data, "-q", "-m"], "convert": [data], "predict": [model, data, "-o"], "rank": [model, data, "-o"]}
    assert main([command, *argv[command], os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert capsys.readouterr().out == ""


@posix
def test_a_model_goes_to_devices_and_pipes(tmp_path):
    """An archive goes back to fill in what it did not know; they cannot."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = RankRLS().fit(X, X[:, 0])
    save(model, os.devnull)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    save(model, pipe)
    reader.join(30)
    (tmp_path / "m.rankrls").write_bytes(found[0])
    np.testing.assert_array_equal(load(tmp_path / "m.rankrls").coef_, model.coef_)
