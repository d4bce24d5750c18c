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

    def system(self, columns, f, fbar, nu, increments):
        """The M x M system of section 3.1, entry by entry."""
        A, b = np.zeros((self.M, self.M)), np.zeros(self.M)
        for v, j in enumerate(columns):
            k, kbar = self.K[v][:, j], self.Kbar[v][:, j]
            A[v, v] = k @ self.L[v] @ k + 2 * nu * (self.M - 1) * kbar @ self.Lbar @ kbar
            b[v] = k @ self.L[v] @ (self.y - f[v])
            for u, i in enumerate(columns):
                if u != v:
                    A[v, u] = -2 * nu * kbar @ self.Lbar @ self.Kbar[u][:, i]
                    if not increments:
                        b[v] += 2 * nu * kbar @ self.Lbar @ (fbar[u] - fbar[v])
        return A, b

    def refit(self, taken, nu):
        """All coefficients in equation (3) by its normal equations, minimum norm."""
        P, M = len(taken), self.M
        A, b = np.zeros((M * P, M * P)), np.zeros(M * P)
        for v in range(M):
            own = slice(v * P, (v + 1) * P)
            Kv, Bv = self.K[v][:, taken[:, v]], self.Kbar[v][:, taken[:, v]]
            A[own, own] += Kv.T @ self.L[v] @ Kv
            b[own] = Kv.T @ self.L[v] @ self.y
            for u in range(M):
                other = slice(u * P, (u + 1) * P)
                Bu = self.Kbar[u][:, taken[:, u]]
                A[own, own] += 2 * nu * Bv.T @ self.Lbar @ Bv * (u != v)
                A[own, other] -= 2 * nu * Bv.T @ self.Lbar @ Bu * (u != v)
        return (np.linalg.pinv(A, rcond=1e-12, hermitian=True) @ b).reshape(M, P)

    def functions(self, taken, a):
        f = [self.K[v][:, taken[:, v]] @ a[v] for v in range(self.M)]
        return f, [self.Kbar[v][:, taken[:, v]] @ a[v] for v in range(self.M)]

    def greedy(self, stages, nu, *, shared, increments=False, backfit=True):
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
                A, b = self.system(columns, f, fbar, nu, increments)
                if np.linalg.eigvalsh(A)[0] > 1e-12 * np.trace(A):
                    gain = b @ np.linalg.solve(A, b)
                    if gain > best[0] + 1e-9 * losses[0]:
                        best = (gain, columns, np.linalg.solve(A, b))
            taken = np.vstack((taken, best[1]))
            a = self.refit(taken, nu) if backfit else np.column_stack((a, best[2]))
            losses.append(self.objective(*self.functions(taken, a), nu))
        return taken, a, losses
