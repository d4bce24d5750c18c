"""What a refusal has to tell: its facts as fields, and a word or two of its text."""

from __future__ import annotations

from typing import Any

import pytest

from rankrls import InputError, InputWarning

FACTS = ("parameter", "row", "column", "file", "line", "settings", "remedy")


class Refusal:
    """What runs inside is refused, ``with Refusal("finite", parameter="y", row=3):``, by an error with these facts.

    Each of ``words`` stands somewhere in the text. ``parameter``, ``row``, ``column`` and ``line`` are equal to those
    of the error; ``file`` is the end of its path, and ``remedy`` a word of what to do. An error of Python or of another
    library has words only, and its ``kind``. ``value`` is the error.
    """

    def __init__(self, *words: str, kind: type[BaseException] = InputError, **facts: Any) -> None:
        assert words or facts, "A refusal tells something."
        assert set(facts) <= {*FACTS}, facts
        assert not facts or issubclass(kind, InputError | InputWarning), f"{kind.__name__} has no facts"
        self.words, self.kind, self.facts = words, kind, facts

    def __enter__(self) -> Refusal:
        self._raises = pytest.raises(self.kind)
        self._caught = self._raises.__enter__()
        return self

    def __exit__(self, *raised: Any) -> bool:
        if not self._raises.__exit__(*raised):
            return False
        self.check(self.value, str(self.value))
        return True

    @property
    def value(self) -> Any:
        return self._caught.value

    def check(self, error: BaseException | None, text: str) -> None:
        """The kind and the facts of an error, and the words of its text as somebody is shown it."""
        assert isinstance(error, self.kind), repr(error)
        for name, expected in self.facts.items():
            found = text if name == "remedy" else getattr(error, name)  # what to do is in the message
            if name == "file":
                agrees = found is not None and found.endswith(str(expected))
            elif name == "remedy":
                agrees = expected in found
            else:
                agrees = found == expected
            assert agrees, f"{name} is {found!r}, not {expected!r}, of {text!r}"
        for word in self.words:
            assert word in text, f"{word!r} is not in {text!r}"

    def __str__(self) -> str:
        return "-".join([*self.words, *(f"{name} {value}" for name, value in self.facts.items())])


def told(value: Any) -> str:
    """The name of a parametrized test: what its refusal tells."""
    return str(value) if isinstance(value, Refusal) else ""
