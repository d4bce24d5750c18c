"""Writers with faults of every kind, to see that the trials find them."""

import sys
import time
from pathlib import Path


def in_place(text, target):
    """A kill leaves a part of it."""
    with open(target, "w") as file:
        for sign in text:
            file.write(sign)
            file.flush()
            time.sleep(0.005)


def forgets_its_temporary(text, target):
    """It never removes what it wrote beside its target."""
    if Path("prepared").exists():
        Path(f"{target}.new").write_text(text)
    Path(target).write_text(text)


def does_nothing_the_second_time(text, target):
    """And calls that a success."""
    path = Path(target)
    seen = Path("seen")
    seen.write_text(seen.read_text() + "." if seen.exists() else ".")
    if len(seen.read_text()) <= 4:  # as often as it is prepared
        path.write_text(text)


def fails(text, target):
    """With an error that is none of the program."""
    Path(target).write_text(text)
    if Path("prepared").exists():
        sys.exit(3)


def hangs(text, target):
    """Once it is no longer prepared."""
    Path(target).write_text(text)
    if Path("prepared").exists():
        time.sleep(600)
