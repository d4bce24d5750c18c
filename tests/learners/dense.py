"""The pursuit of several views by dense systems, explicit Laplacians and refits."""

from __future__ import annotations

from itertools import product

import numpy as np


class DensePursuit:
    """Equation (3), term by term.

    ``L[v]`` is the Laplacian of view v over the scored rows y, ``Lbar`` that of the unscored ones; ``K[v]`` and
    ``Kbar[v]`` hold the columns that view v may take, on either.
    """

    def __init__(self, y, L, Lbar, K, Kbar):
        self.M, self.y, self.L, self.Lbar, self.K, self.Kbar = len(K), y, L, Lbar, K, Kbar

    def objective(self, f, fbar, nu):
        """Equation (3) as it stands."""
        fit = sum((self.y - f[v]) @ self.L[v] @ (self.y - f[v]) for v in range(self.M))
        pairs = product(range(self.M), repeat=2)
        return fit + nu * sum((fbar[v] - fbar[u]) @ self.Lbar @ (fbar[v] - fbar[u]) for v, u in pairs)

    def system(self, columns, f, fbar, nu):
        """The M x M system of section 3.1, entry by entry."""
        A, b = np.zeros((self.M, self.M)), np.zeros(self.M)
        for v, j in enumerate(columns):
            k, kbar = self.K[v][:, j], self.Kbar[v][:, j]
            A[v, v] = k @ self.L[v] @ k + 2 * nu * (self.M - 1) * kbar @ self.Lbar @ kbar
            b[v] = k @ self.L[v] @ (self.y - f[v])
            for u, i in enumerate(columns):
                if u != v:
                    A[v, u] = -2 * nu * kbar @ self.Lbar @ self.Kbar[u][:, i]
                    b[v] += 2 * nu * kbar @ self.Lbar @ (fbar[u] - fbar[v])
        return A, b

    def refit(self, taken, nu):
        """All coefficients, (M, stages)."""
        return self.fitted([(v, j) for v in range(self.M) for j in taken[:, v]], nu).reshape(self.M, len(taken))

    def functions(self, taken, a):
        f = [self.K[v][:, taken[:, v]] @ a[v] for v in range(self.M)]
        return f, [self.Kbar[v][:, taken[:, v]] @ a[v] for v in range(self.M)]

    def greedy(self, stages, nu, *, shared, backfit=True):
        M = self.M
        taken, a = np.zeros((0, M), dtype=int), np.zeros((M, 0))
        losses = [sum(self.y @ L @ self.y for L in self.L)]
        sizes = [K.shape[1] for K in self.K]
        combinations = [(j,) * M for j in range(sizes[0])] if shared else list(product(*map(range, sizes)))
        for _ in range(stages):
            f, fbar = self.functions(taken, a)
            best = (-np.inf, None, None)
            for columns in combinations:
                if all(j in taken[:, v] for v, j in enumerate(columns)) and backfit:
                    continue
                A, b = self.system(columns, f, fbar, nu)
                if np.linalg.eigvalsh(A)[0] > 1e-12 * np.trace(A):
                    gain = b @ np.linalg.solve(A, b)
                    if gain > best[0] + 1e-9 * losses[0]:
                        best = (gain, columns, np.linalg.solve(A, b))
            taken = np.vstack((taken, best[1]))
            a = self.refit(taken, nu) if backfit else np.column_stack((a, best[2]))
            losses.append(self.objective(*self.functions(taken, a), nu))
        return taken, a, losses

    def fitted(self, taken, nu):
        """Coefficients of (view, column) pairs by least squares on roots of the Laplacians, minimum norm."""
        blocks, right = [], []
        for v in range(self.M):
            root = _root(self.L[v])
            blocks.append([root @ self.K[u][:, j] if u == v else np.zeros(len(root)) for u, j in taken])
            right.append(root @ self.y)
        root = np.sqrt(2 * nu) * _root(self.Lbar)
        for v in range(self.M):
            for u in range(v):
                signs = {v: 1.0, u: -1.0}
                blocks.append([signs.get(w, 0.0) * (root @ self.Kbar[w][:, j]) for w, j in taken])
                right.append(np.zeros(len(root)))
        A = np.concatenate([np.column_stack(block) for block in blocks])
        return np.linalg.lstsq(A, np.concatenate(right), rcond=1e-12)[0]

    def in_turn(self, stages, nu, *, disjoint=False, backfit=True):
        """One view after the other: the column that lowers equation (3) most by its own best step."""
        taken, a, losses = [], np.zeros(0), [sum(self.y @ L @ self.y for L in self.L)]
        for _ in range(stages):
            for v in range(self.M):
                f, fbar = self._sums(taken, a)
                best = (1e-9 * losses[0], None, None)
                closed = {j for u, j in taken if (disjoint and u != v) or (backfit and u == v)}
                for j in set(range(self.K[v].shape[1])) - closed:
                    k, kbar = self.K[v][:, j], self.Kbar[v][:, j]
                    energy = k @ self.L[v] @ k + 2 * nu * (self.M - 1) * kbar @ self.Lbar @ kbar
                    pull = sum(kbar @ self.Lbar @ (fbar[u] - fbar[v]) for u in range(self.M))
                    b = k @ self.L[v] @ (self.y - f[v]) + 2 * nu * pull
                    if energy > 1e-12 and b**2 / energy > best[0]:
                        best = (b**2 / energy + 1e-9 * losses[0], j, b / energy)
                if best[1] is not None:
                    taken.append((v, best[1]))
                    a = self.fitted(taken, nu) if backfit else np.append(a, best[2])
            losses.append(self.objective(*self._sums(taken, a), nu))
        return taken, a, losses

    def _sums(self, taken, a):
        f, fbar = np.zeros((self.M, len(self.y))), np.zeros((self.M, len(self.Lbar)))
        for (v, j), weight in zip(taken, a, strict=True):
            f[v] += weight * self.K[v][:, j]
            fbar[v] += weight * self.Kbar[v][:, j]
        return f, fbar


def _root(L):
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
