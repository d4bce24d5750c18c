"""The documentation of installed packages: a page for each public function and class, and the references."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

PACKAGES = ("numpy", "scipy", "sklearn")
NOT_DOCUMENTED = {"conftest", "core", "distutils", "experimental", "externals", "f2py", "setup", "testing", "tests"}
HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}[ ]*$", re.MULTILINE)
SIGNATURE = re.compile(r"[\w.]+\(.*\)?(\s*->.*)?")
LISTED = re.compile(r"(?::[a-z:]+:)?`?~?([A-Za-z_][\w.]*)`?")  # an entry of See Also
IN_MODULE = re.compile(r"\s*(?:[-*]\s+)?`?~?([A-Za-z_][\w.]*)`?(?:\s|$)")  # a line of a module's list of functions
REFERENCE = re.compile(r"(`~?|\b)([A-Za-z_][\w.]*\w)(`|\()?")


@dataclass(frozen=True)
class Page:
    """What stands in the documentation of one function or class."""

    names: tuple[str, ...]  # all the places where it is found, the shortest first
    value: Any
    summary: str
    sections: dict[str, str]  # by heading; what comes before the first one has the heading ""

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def module(self) -> str:
        return self.name.rpartition(".")[0]

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    def text(self, *left_out: str) -> str:
        """The sections but "See Also", which holds the answers, and those ``left_out``."""
        return "\n".join(text for title, text in self.sections.items() if title not in {"See Also", *left_out})


def public_modules(packages: tuple[str, ...]) -> dict[str, ModuleType]:
    """The packages and all public modules below them; those that cannot be imported here are left out."""
    found, waiting = {}, [importlib.import_module(name) for name in packages]
    while waiting:
        module = waiting.pop()
        found[module.__name__] = module
        for info in sorted(pkgutil.iter_modules(getattr(module, "__path__", [])), key=lambda info: info.name):
            if not info.name.startswith("_") and info.name not in NOT_DOCUMENTED:
                try:
                    waiting.append(importlib.import_module(f"{module.__name__}.{info.name}"))
                except ImportError:  # it needs a package that is not installed
                    continue
    return found


def _sections(text: str) -> dict[str, str]:
    first, *rest = HEADING.split(text)
    sections = {"": first}
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        title = "See Also" if title.lower() == "see also" else title
        sections[title] = sections.get(title, "") + body
    return sections


def _summary(text: str) -> str:
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
    return next((part for part in paragraphs if not SIGNATURE.fullmatch(part)), "")


def _is_documented(value: Any) -> bool:
    is_error = isinstance(value, type) and issubclass(value, BaseException)
    return callable(value) and not is_error and len(inspect.getdoc(value) or "") >= 40


@dataclass(frozen=True)
class Library:
    """Pages, sorted by name, and the modules that they come from."""

    pages: tuple[Page, ...]
    modules: dict[str, ModuleType]

    @classmethod
    def installed(cls, packages: tuple[str, ...] = PACKAGES) -> Library:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated modules warn when they are looked into
            modules = public_modules(packages)
            documented: dict[str, list[tuple[str, Any]]] = {}  # aliases, and copies, share their text
            for module in modules.values():
                for name in getattr(module, "__all__", ()):
                    value = getattr(module, name, None)
                    if not name.startswith("_") and _is_documented(value):
                        documented.setdefault(inspect.getdoc(value), []).append((f"{module.__name__}.{name}", value))
        pages = []
        for text, found in documented.items():
            found = sorted(found, key=lambda pair: (pair[0].count("."), len(pair[0]), pair[0]))
            if getattr(found[0][1], "__module__", "") == "scipy.stats._new_distributions":
                text = re.sub(".*# may vary", "", text)  # random numbers, others in each run
            sections = _sections(text)
            names = tuple(dict.fromkeys(name for name, _ in found))
            pages.append(Page(names, found[0][1], _summary(sections[""]), sections))
        return cls(tuple(sorted(pages, key=lambda page: page.name)), modules)

    def __len__(self) -> int:
        return len(self.pages)

    def finder(self):
        """A function that finds the page which a name means, seen from a module; None if there is none."""
        places = {name: number for number, page in enumerate(self.pages) for name in page.names}
        short: dict[tuple[str, str], set[int]] = {}
        for name, number in places.items():
            short.setdefault((name.partition(".")[0], name.rpartition(".")[2]), set()).add(number)

        def find(name: str, module: str) -> int | None:
            name = re.sub(r"^np\.", "numpy.", name.rstrip("."))
            parts = module.split(".")
            outwards = [".".join([*parts[:n], name]) for n in range(len(parts), -1, -1)]
            for full in (name, *outwards, *(f"{package}.{name}" for package in PACKAGES)):
                if full in places:
                    return places[full]
            alike = short.get((parts[0], name.rpartition(".")[2]), set())
            return next(iter(alike)) if len(alike) == 1 else None

        return find

    def see_also(self) -> list[set[int]]:
        """For each page the pages that its section "See Also" lists."""
        find, answers = self.finder(), []
        for number, page in enumerate(self.pages):
            lines = [line for line in page.sections.get("See Also", "").splitlines() if line[:1].strip()]
            words = [word.strip() for line in lines for word in line.split(" : ")[0].split(",")]
            listed = {find(match[1], page.module) for word in words if (match := LISTED.match(word))}
            answers.append(listed - {None, number})
        return answers

    def mentions(self) -> sp.csr_matrix:
        """How often each page (row) names another (column) in backquotes, as a call or with its module; no See Also."""
        find, rows, columns = self.finder(), [], []
        for number, page in enumerate(self.pages):
            for before, name, after in REFERENCE.findall(page.text()):
                if before.startswith("`") or after == "(" or "." in name:
                    named = find(name, page.module)
                    if named is not None and named != number:
                        rows.append(number)
                        columns.append(named)
        return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(self), len(self)))

    def lists(self) -> list[list[int]]:
        """Runs of functions that the documentation of a module lists one below the other."""
        find, runs = self.finder(), []
        for name, module in self.modules.items():
            for part in re.split(r"\n\s*\n", inspect.getdoc(module) or ""):
                lines = [match[1] for line in part.splitlines() if (match := IN_MODULE.match(line))]
                run = [number for line in lines if (number := find(line, name)) is not None]
                if len(run) > 1:
                    runs.append(run)
        return runs


def place_in_source(value: Any) -> tuple[str, int]:
    """The module that defines a function or class, and the line of its (first) function there, -1 if it is compiled."""
    module = getattr(value, "__module__", None) or type(value).__module__
    members = list(vars(value).values()) if isinstance(value, type) else [value]
    for member in members:
        code = getattr(inspect.unwrap(member), "__code__", None) if callable(member) else None
        if code is not None:
            return module, code.co_firstlineno
    return module, -1
