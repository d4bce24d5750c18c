"""What replaces a file or folder: its permissions, what is there after any fault, and what is written to in place."""

import json
import os
import re
import signal
import stat
import subprocess
import sys

import pytest
from tests.refusals import Refusal

from rankrls.io import atomic_write
from rankrls.io.files import new_folder

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices as POSIX has them")


def write(path, text="new"):
    with atomic_write(path, "w") as file:
        file.write(text)


@posix
def test_permissions(tmp_path):
    path = tmp_path / "x"
    (tmp_path / "plain").write_text("")
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)
    path.chmod(0o4604)
    write(path, "again")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_text()) == (0o604, "again")
    (tmp_path / "link").symlink_to(path)
    write(tmp_path / "link", "third")
    assert (tmp_path / "link").is_symlink()
    assert path.read_text() == "third"


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
@pytest.mark.parametrize("name", ["x", "y" * 250, "a*[0-9]"])
def test_a_killed_writer_leaves_the_old_file(name, tmp_path):
    write(tmp_path / name, "old")
    kill_while_writing(tmp_path / name)
    (left,) = {*os.listdir(tmp_path)} - {name}
    assert left.startswith(f".{name[:50]}.tmp")
    assert (tmp_path / name).read_text() == "old"
    write(tmp_path / name)
    assert (tmp_path / name).read_text() == "new"


def test_what_fails_leaves_the_old_file(tmp_path):
    write(tmp_path / "x", "old")
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "x", "w") as file:
        file.write(str(1 // 0))
    assert (os.listdir(tmp_path), (tmp_path / "x").read_text()) == (["x"], "old")
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    with pytest.raises(FileNotFoundError) as found:
        write(tmp_path / "none" / "x")
    assert found.value.filename == str(tmp_path / "none" / "x")
    with pytest.raises(FileNotFoundError) as found, atomic_write(tmp_path / "x"):
        (tmp_path / "another").read_text()
    assert found.value.filename == str(tmp_path / "another")


def test_folders(tmp_path):
    ours, place = re.compile("[ab]"), tmp_path / "f"
    place.mkdir()
    for names, force in (("ab", False), ("b", True)):
        with new_folder(place, ours, force=force) as new:
            for name in names:
                (new / name).write_text(name)
        assert sorted(os.listdir(place)) == [*names]
    with pytest.raises(FileNotFoundError), new_folder(place, ours, force=True) as new:
        (new / "a" / "none").write_text("")
    with Refusal("not empty", parameter="force"), new_folder(place, ours, force=False):
        raise AssertionError
    (place / "c").write_text("mine")
    with Refusal("c", parameter="force"), new_folder(place, ours, force=True):
        raise AssertionError
    assert (os.listdir(tmp_path), sorted(os.listdir(place))) == (["f"], ["b", "c"])
    with pytest.raises(NotADirectoryError), new_folder(place / "b", ours, force=True):
        raise AssertionError


_DISTURBED = """
import itertools, json, os, re, signal, sys
from pathlib import Path
from rankrls.io.files import new_folder

ROOT, how = Path(sys.argv[1]), sys.argv[2]
PLACE = ROOT / "f"

def replace(text):
    with new_folder(PLACE, re.compile("[ab]"), force=True) as new:
        for name in "ab":
            (new / name).write_text(text)

def disturbed(number):
    steps = itertools.count(1)
    def hook(event, arguments):
        if (event.startswith("os.") or str(ROOT) in str(arguments)) and next(steps) == number:
            print(event, flush=True)
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise {"failure": OSError(16, "Device or resource busy"), "interrupt": KeyboardInterrupt()}[how]
    sys.addaudithook(hook)
    try:
        replace("new")
    except (OSError, KeyboardInterrupt):
        os._exit(1)
    os._exit(0)

def held(folder):
    return sorted((path.name, path.read_text()) for path in folder.iterdir())

found = []
for number in itertools.count(1):
    replace("old")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        disturbed(number)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(write)
    event = os.read(read, 100).decode().strip()
    os.close(read)
    if not event:
        break
    folders = {path.name: held(path) for path in ROOT.iterdir()}
    replace("next")
    found.append([event, status, folders, [path.name for path in ROOT.iterdir()], held(PLACE)])
print(json.dumps(found))
"""


@posix
@pytest.mark.parametrize("how", ["kill", "failure", "interrupt"])
def test_at_every_step_the_old_folder_or_the_new_one_is_there(how, tmp_path):
    done = subprocess.run([sys.executable, "-c", _DISTURBED, tmp_path, how], capture_output=True, text=True, check=True)
    trials = json.loads(done.stdout)
    assert {"os.rename", "os.chmod", "os.rmdir"} <= {event for event, *_ in trials}
    old, new, latest = ([["a", text], ["b", text]] for text in ("old", "new", "next"))
    moved_aside = []
    for event, status, folders, left, after in trials:
        moved_aside.append("f" not in folders)
        whole = folders[".f.rankrls-old" if moved_aside[-1] else "f"]
        assert whole in (old, new), (event, folders)
        assert status != 0 or whole == new
        assert [name for name in left if how != "kill" or not name.startswith(".f.tmp")] == ["f"]
        assert after == latest
    assert any(moved_aside) == (how == "kill")


def test_a_folder_that_was_moved_aside_comes_back_before_anything_is_refused(tmp_path):
    aside = tmp_path / ".f.rankrls-old"
    aside.mkdir()
    (aside / "a").write_text("old")
    with Refusal("not empty", parameter="force"), new_folder(tmp_path / "f", re.compile("[ab]"), force=False):
        raise AssertionError
    assert (os.listdir(tmp_path), (tmp_path / "f" / "a").read_text()) == (["f"], "old")


def test_two_writers_of_a_target(tmp_path):
    """The last one to finish wins."""
    with atomic_write(tmp_path / "x", "w") as file, new_folder(tmp_path / "f", re.compile("a"), force=True) as new:
        file.write("first")
        (new / "a").write_text("first")
        write(tmp_path / "x", "second")
        with new_folder(tmp_path / "f", re.compile("a"), force=True) as other:
            (other / "a").write_text("second")
        assert (tmp_path / "f" / "a").read_text() == "second"
    assert (tmp_path / "x").read_text() == (tmp_path / "f" / "a").read_text() == "first"
    assert sorted(os.listdir(tmp_path)) == ["f", "x"]


def test_a_mounted_volume_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) == str(tmp_path))
    with Refusal("a volume is mounted there", parameter="force"), new_folder(tmp_path, re.compile("a"), force=True):
        raise AssertionError
    with new_folder(tmp_path / "inside", re.compile("a"), force=True) as new:
        (new / "a").write_text("")
    assert os.listdir(tmp_path) == ["inside"]


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
