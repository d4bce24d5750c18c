"""Objects of a search: candidates, the problems that they pose for data, and solutions of these problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from rankrls._comparisons import Data
from rankrls._curves import Curve
from rankrls._typing import Array, Index, Mask, Values
from rankrls.kernels import Kernel
from rankrls.metrics import Measure
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.scorer import Basis

LINEAR = Kernel("linear")


class Solutions(Protocol):
    """Functions for several values of a problem's parameter."""

    def scores(self, X: Any) -> Array:
        """Scores of items, (rows, values, targets)."""
        ...


S = TypeVar("S", bound=Solutions, covariant=True)


class Problem(ABC, Generic[S]):
    """One kernel with one graph on some data, for every value of its parameter.

    Attributes
    ----------
    parameter : str
        Name of the parameter, such as "alpha".
    lost_feature : int or None
        Number of a feature that is lost in rounding next to others.
    """

    parameter: ClassVar[str]

    @abstractmethod
    def axis(self) -> Array:
        """An automatic grid with the simplest model first."""

    @abstractmethod
    def path(self, values: Array) -> S:
        """Functions for several values."""

    def solve(self, value: float) -> S:
        """Function for one value."""
        return self.path(np.array([value]))

    @property
    def lost_feature(self) -> int | None:
        return None

    def held_out_curve(self, measure: Measure, folds: Sequence[Index] | None, values: Array) -> Curve | None:
        """Evaluation of every value with held-out units, each alone or in folds, without refitting.

        None if it needs refits.
        """
        return None

    def hold_out_items(
        self, graph: PreferenceGraph, folds: Sequence[tuple[Index, Index]], values: Array
    ) -> list[Array] | None:
        """Margins (preferences, values) of the second preferences of each fold, fitted to the first.

        None if they need refits.
        """
        return None

    def scores_without(self, blocks: Sequence[Any], values: Array) -> Array | None:
        """Scores of the rows of each block by the model fitted without it, (rows, values, targets).

        None if they need refits.
        """
        return None

    def unresolved(self, values: Array) -> Mask:
        """Mask of values that are lost in rounding: their held-out scores are meaningless."""
        return np.zeros(len(values), dtype=bool)


@dataclass(frozen=True, eq=False, kw_only=True)
class Candidate(ABC, Generic[S]):
    """Description of a problem; cheap until the problem is posed.

    Attributes
    ----------
    kernel : Kernel
    choices : dict
        Parameters that are chosen with it, by name.
    square : bool
        Whether X is a kernel matrix with one column per training item.
    """

    kernel: Kernel = LINEAR
    choices: Values = field(default_factory=dict)

    @abstractmethod
    def problem(self, data: Data) -> Problem[S]:
        """The problem for the given data."""

    @property
    def square(self) -> bool:
        return self.kernel.name == "precomputed"

    @property
    def basis(self) -> Basis | None:
        """Items over which functions expand; None for all."""
        return None
