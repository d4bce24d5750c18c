"""How objects of a registered class are taken apart, checked and made again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from rankrls.persistence._checks import Facts, check_forms, require
from rankrls.persistence._scikit import check_output, check_parameters

State = dict[str, Any]
_REQUESTS = "_metadata_request"
_OUTPUT = "_sklearn_output_config"


def public_object(name: str) -> Any:
    """The class or function of a public name; its module is imported if it has not been."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def _vars(value: Any) -> State:
    """The attributes of an object. What ``set_fit_request`` and its like asked for becomes plain values."""
    state = dict(vars(value))
    if _REQUESTS in state:
        methods = {name: getattr(part, "requests", None) for name, part in vars(state[_REQUESTS]).items()}
        state[_REQUESTS] = {name: dict(requests) for name, requests in methods.items() if requests}
    return state


def with_attributes(cls: Any, state: State) -> Any:
    """An object with the attributes of a state; a parameter that the file does not know has its default."""
    owner = cls.__name__
    for name in state:
        taken = inspect.getattr_static(cls, name, None)
        allowed = name.isidentifier() and not name.startswith("__") and not hasattr(type(taken), "__get__")
        require(allowed, owner, name[:80], "is no attribute that a model file may set")
    for parameter in _parameters(cls):
        if parameter.name not in state:
            require(parameter.default is not parameter.empty, owner, parameter.name, "is missing")
            state[parameter.name] = parameter.default
    if _OUTPUT in state:
        check_output(owner, state[_OUTPUT])
    out = cls.__new__(cls)
    out.__dict__.update({name: value for name, value in state.items() if name != _REQUESTS})
    if state.get(_REQUESTS):
        requests = out._get_metadata_request()
        for method, wanted in state[_REQUESTS].items():
            for name, alias in wanted.items():
                getattr(requests, method).add_request(param=name, alias=alias)
        out.__dict__[_REQUESTS] = requests
    check_parameters(owner, out)
    return out


def _parameters(cls: Any) -> list[inspect.Parameter]:
    """What a class takes to be made, without ``*args`` and ``**kwargs``."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in inspect.signature(cls).parameters.values() if p.kind not in variable]


@dataclass(frozen=True)
class Kind:
    """A class, and how its objects are taken apart, checked and made again.

    Attributes
    ----------
    name : str
        The public name: module and class. A value that is no public class has a name without a module.
    forms : mapping
        What its attributes must be; see :mod:`rankrls.persistence._checks`.
    check : callable, optional
        What the forms cannot say of a state.
    take : callable
        The state of an object.
    make : callable
        The object of a class and a checked state.
    home : str
        The module of a class without a public name.
    is_model : bool
        Whether a file may hold it as its model.
    keeps_parts : bool
        Whether its settings are what it learned: transformers that were fitted where they are.
    """

    name: str
    forms: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[State], Facts] | None = None
    take: Callable[[Any], State] = _vars
    make: Callable[[Any, State], Any] = with_attributes
    home: str = ""
    is_model: bool = False
    keeps_parts: bool = False

    @property
    def cls(self) -> type:
        """The class itself."""
        found: type = public_object(f"{self.home}.{self.name}" if self.home else self.name)
        return found

    def verify(self, state: State) -> None:
        """Raise a ModelFileError if a value of a state is not what the class asks for."""
        owner, settings = self.cls.__name__, [p.name for p in _parameters(self.cls)]
        learned = state.keys() - {*settings, _OUTPUT, _REQUESTS}
        # A ColumnTransformer keeps the transformers as it was given them, not fitted.
        if learned or self.is_model or self.keeps_parts or self.take is not _vars:
            check_forms(owner, state, self.forms, settings)
            for fact in () if self.check is None else self.check(state):
                require(fact[0], owner, *fact[1:])

    def restore(self, state: State) -> Any:
        """The object of a state, checked."""
        self.verify(state)
        return self.make(self.cls, state)
