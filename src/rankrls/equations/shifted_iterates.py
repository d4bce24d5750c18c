"""The iterates of all shifts of a Krylov run, updated in one fused pass.

For each shift, ``p <- zeta v + beta p`` and ``x <- x + gamma p`` with a vector v common to all. Shifts are the fast
axis, so that one pass over v serves them all.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, threads_worth

_STEPS = 8
_WORTH = 1 << 18
"""Steps of entries that a thread shall have."""


@compiled
def _advance(v, steps, scalars, active, first, last, p, x):  # type: ignore[no-untyped-def]
    """Steps of ``p <- zeta v + beta p, x <- x + gamma p`` for rows first to last: p and x are read once for all."""
    for i in range(np.uint64(first), np.uint64(last)):
        for s in range(np.uint64(steps)):
            value = v[s, i]
            for k in range(np.uint64(active[s])):
                p[i, k] = scalars[s, 0, k] * value + scalars[s, 1, k] * p[i, k]
                x[i, k] += scalars[s, 2, k] * p[i, k]


@compiled
def _replay(v, steps, scalars, k, p, x, out):  # type: ignore[no-untyped-def]
    """Column k of x after some steps, without moving p and x."""
    k = np.uint64(k)
    for i in range(np.uint64(len(out))):
        own_p, own_x = p[i, k], x[i, k]
        for s in range(np.uint64(steps)):
            own_p = scalars[s, 0, k] * v[s, i] + scalars[s, 1, k] * own_p
            own_x += scalars[s, 2, k] * own_p
        out[i] = own_x


class ShiftedIterates:
    """``x`` and ``p`` of every shift, (size, shifts) each.

    Parameters
    ----------
    size, shifts : int
    buffered : bool
        Keep the vectors of several steps and advance x and p once for all of them: x is then read and written a
        fraction as often, and a marked iterate is made up from the vectors when they are spent. The arithmetic, and so
        the result, is the same.
    """

    def __init__(self, size: int, shifts: int, *, buffered: bool = False) -> None:
        self._x = np.zeros((size, shifts))
        self._p = np.zeros((size, shifts))
        steps = _STEPS if buffered and shifts > 1 else 1
        self._v = np.empty((steps, size))
        self._scalars = np.zeros((steps, 3, shifts))
        self._active = np.zeros(steps, dtype=np.int64)
        self._held = 0
        self._mark: tuple[int, int] | None = None
        self._marked: NDArray[np.float64] | None = None

    def push(
        self,
        v: NDArray[np.float64],
        zeta: NDArray[np.float64],
        beta: NDArray[np.float64],
        gamma: NDArray[np.float64],
    ) -> None:
        """One step of the first ``len(zeta)`` shifts; the others stay. v is copied."""
        if self._held == len(self._v):
            self._flush()
        s, active = self._held, len(zeta)
        self._v[s] = v
        self._scalars[s, 0, :active] = zeta
        self._scalars[s, 1, :active] = beta
        self._scalars[s, 2, :active] = gamma
        self._active[s] = active
        self._held += 1

    def mark(self, k: int) -> None:
        """Remember the present iterate of shift k, in place of the last one marked."""
        self._mark = (k, self._held)

    def marked(self) -> NDArray[np.float64] | None:
        """The iterate that was marked, (size,); None where none was."""
        self._redeem()
        return self._marked

    def column(self, k: int) -> NDArray[np.float64]:
        """The present iterate of shift k, a copy."""
        self._flush()
        return np.ascontiguousarray(self._x[:, k])

    def current(self) -> NDArray[np.float64]:
        """The present iterates, (size, shifts). Not a copy."""
        self._flush()
        return self._x

    def _flush(self) -> None:
        if not self._held:
            return
        self._redeem()
        size, shifts = self._x.shape
        threads = threads_worth(size * shifts * self._held, _WORTH)
        edges = np.linspace(0, size, threads + 1).astype(np.int64)

        def run(part: tuple[int, int]) -> None:
            _advance(self._v, self._held, self._scalars, self._active, *part, self._p, self._x)

        map_threads(run, list(pairwise(edges)))
        self._held = 0

    def _redeem(self) -> None:
        """Make up the marked iterate while the vectors since x are still there."""
        if self._mark is None:
            return
        k, steps = self._mark
        while steps and self._active[steps - 1] <= k:  # frozen since
            steps -= 1
        out = np.empty(len(self._x))
        _replay(self._v, steps, self._scalars, k, self._p, self._x, out)
        self._marked, self._mark = out, None
