"""Every file that a command reads, broken in every way: status 2, one line that names it, and nothing written."""

import gzip

import pytest

from rankrls.cli import main

READERS = {
    "fit": "fit @ -m new.rankrls",
    "fit --vali": "fit train.txt --vali @ -m new.rankrls",
    "fit --test": "fit train.txt --test @ -m new.rankrls",
    "fit --pairs": "fit train.txt --pairs @ -m new.rankrls",
    "fit csv": "fit @ --input-format csv -m new.rankrls",
    "cv": "cv @",
    "predict model": "predict @ test.txt -o new.txt",
    "predict data": "predict m.rankrls @ -o new.txt",
    "rank model": "rank @ test.txt -o new.txt",
    "rank data": "rank m.rankrls @ -o new.txt",
    "explain model": "explain @ test.txt 0 1",
    "explain data": "explain m.rankrls @ 0 1",
    "explain --names": "explain m.rankrls test.txt 0 1 --names @",
    "evaluate model": "evaluate @ test.txt",
    "evaluate data": "evaluate m.rankrls @",
    "evaluate --scores": "evaluate --scores @ test.txt",
    "evaluate --pairs": "evaluate m.rankrls test.txt --pairs @",
    "compare data": "compare @ m.rankrls n.rankrls --html new.html",
    "compare model": "compare test.txt m.rankrls @ --html new.html",
    "export model": "export @ new.json --format json --names names.txt",
    "export --names": "export m.rankrls new.json --format json --names @",
    "export --offset": "export m.rankrls new.json --format json --names names.txt --offset @",
    "convert": "convert @ new.csv",
    "info": "info @",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder of files that are as they should be."""
    folder = tmp_path_factory.mktemp("whole")
    lines = [f"{k * k % 3} qid:{k // 6} 1:{k * 7 % 11} 2:{k * 5 % 13}\n" for k in range(48)]
    for name in ("train.txt", "test.txt"):
        (folder / name).write_text("".join(lines))
    (folder / "names.txt").write_text("a\nb\n")
    for name in ("m.rankrls", "n.rankrls"):
        assert main(["fit", str(folder / "train.txt"), "-m", str(folder / name), "-q", "--alphas", "1,2"]) == 0
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A folder of broken files, beside what is whole."""
    folder = tmp_path_factory.mktemp("broken")
    text = b"0 qid:1 1:0.5 2:1\n1 qid:1 1:0.25 2:2\n" * 20
    contents = {
        "empty": b"",
        "binary": bytes(range(256)) * 4,
        "latin1": "caf\xe9;\xe9t\xe9\n".encode("latin-1") * 9,
        "utf16": text.decode().encode("utf-16"),
        "cut_gzip": gzip.compress(text, mtime=0)[:30],
        "zip": b"PK\x03\x04 and more",
        "pickle": b"\x80\x04K\x01.",
        "page": b"<html><body>404 Not found</body></html>\n",
        "escape": b"\x1b[31mred\x1b[0m,\x07\n",
    }
    for name, content in contents.items():
        (folder / f"{name}.bad").write_bytes(content)
    (folder / "directory.bad").mkdir()
    (folder / "loop.bad").symlink_to("loop.bad")
    return folder


@pytest.mark.parametrize("reader", READERS)
def test_a_broken_file(reader, broken, whole, rankrls, monkeypatch):
    monkeypatch.chdir(whole)
    before = sorted(whole.iterdir())
    for path in (*sorted(broken.iterdir()), broken / "missing.bad", broken / "no" / "folder.bad"):
        result = rankrls(*(path if word == "@" else word for word in READERS[reader].split()))
        *notes, error = result.err.splitlines()
        assert (result.status, result.out) == (2, ""), (path.name, result.err)
        assert error.startswith("rankrls: error: "), (path.name, result.err)
        assert "internal" not in error
        assert str(path) in error or "--names has " in error, error
        assert all(note.startswith("rankrls: note: ") for note in notes)
        assert result.err.replace("\n", "").isprintable(), repr(result.err)
        assert sorted(whole.iterdir()) == before
