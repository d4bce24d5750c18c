"""Every problem keeps the contract of :mod:`tests.selection.contract`."""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from rankrls.greedy.pursuit_problem import Pursuit
from rankrls.kernels import Kernel
from rankrls.problems.subset import Basis
from rankrls.selection.candidates import ForwardSelected, HingeLoss, LeastSquares, OverBasis, Pursued
from tests.greedy.test_pursuit import greedy_by_refit
from tests.hinge.pair_oracle import listed_pairs, optimum
from tests.oracles import gaussian, ridge
from tests.selection.contract import ManyTargets, ProblemContract, SearchedProblem

LINEAR, RBF = Kernel("linear"), Kernel("rbf", 0.2)


def factor(L):
    """F with F'F = L."""
    values, vectors = np.linalg.eigh(L)
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def target_of(L, b):
    """y with Ly = b, so that the oracles of labels serve preferences too."""
    return np.linalg.pinv(L) @ b


class LinearOracle(ManyTargets):
    solver = "primal"
    forms = (np.asarray, sparse.csr_array)

    def candidate(self, case):
        return LeastSquares(kernel=LINEAR, setting=case.setting, solver=self.solver)

    def oracle(self, case, k, value, Z):
        return Z @ ridge(case.X, case.L[k], target_of(case.L[k], case.b[:, k]), value)


class TestPrimal(LinearOracle, SearchedProblem):
    pass


class TestLinearDual(LinearOracle, SearchedProblem):
    solver = "dual"
    resolved = 1e-2  # of features as few as these the dual knows a null space by rounding only


class TestLinearByConjugateGradients(LinearOracle):
    solver = "cg"
    holds_out = False
    exact = 1e-6


class KernelOracle(ManyTargets):
    solver = "dual"

    def candidate(self, case):
        return LeastSquares(kernel=RBF, setting=case.setting, solver=self.solver)

    def oracle(self, case, k, value, Z):
        K = gaussian(case.X, case.X, 0.2)
        values, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(values, 1e-300))
        w = ridge(root, case.L[k], target_of(case.L[k], case.b[:, k]), value)
        return gaussian(Z, case.X, 0.2) @ (vectors @ (w / np.sqrt(np.maximum(values, 1e-300))))


class TestKernelDual(KernelOracle, SearchedProblem):
    exact = 1e-5
    resolved = 1.0  # a kernel matrix of condition 1e6 leaves no digit at 1e-8


class TestKernelByConjugateGradients(KernelOracle):
    solver = "cg"
    holds_out = False
    exact = 1e-5
    values = np.array([1e8, 1e3, 1.0, 1e-1, 1e-2])


class SubsetOracle(ManyTargets):
    rows = np.array([0, 3, 5, 8])

    def candidate(self, case):
        basis = Basis.build(RBF, case.X[self.rows])
        return OverBasis(kernel=RBF, setting=case.setting, make=lambda: basis)

    def oracle(self, case, k, value, Z):
        R = case.X[self.rows]
        T = np.linalg.inv(np.linalg.cholesky(gaussian(R, R, 0.2))).T
        w = ridge(gaussian(case.X, R, 0.2) @ T, case.L[k], target_of(case.L[k], case.b[:, k]), value)
        return gaussian(Z, R, 0.2) @ (T @ w)


class TestSubset(SubsetOracle, SearchedProblem):
    exact = 1e-6


class TestSubsetByConjugateGradients(SubsetOracle):
    holds_out = False
    exact = 1e-5

    def candidate(self, case):
        basis = Basis.build(RBF, case.X[self.rows])
        return OverBasis(kernel=RBF, setting=case.setting, make=lambda: basis, tol=1e-12, max_iter=500)


class TestSigned(ManyTargets, SearchedProblem):
    signs = np.array([1, 0, -1, 1], dtype=np.int8)

    def candidate(self, case):
        return LeastSquares(kernel=LINEAR, setting=case.setting, signs=self.signs)

    def oracle(self, case, k, value, Z):
        F = factor(case.L[k])
        A = np.vstack((F @ case.X, np.sqrt(value) * np.eye(4)))
        target = np.concatenate((F @ target_of(case.L[k], case.b[:, k]), np.zeros(4)))
        low, high = np.where(self.signs > 0, 0.0, -np.inf), np.where(self.signs < 0, 0.0, np.inf)
        return Z @ optimize.lsq_linear(A, target, (low, high), method="bvls", tol=1e-14).x


class TestHinge(SearchedProblem):
    values = np.array([1e-4, 1e-2, 0.1, 1.0, 10.0])
    exact = resolved = 1e-3
    loss = "squared_hinge"

    @classmethod
    def applies(cls, name):
        return name not in ("ties excluded", "mixed with regression")  # pairs with different labels are all it has

    def candidate(self, case):
        return HingeLoss(kernel=LINEAR, setting=case.setting, loss=self.loss, tol=1e-12, max_iter=200)

    def oracle(self, case, k, value, Z):
        data = case.comparisons
        if hasattr(data, "graph"):
            kept = np.flatnonzero(data.graph.weight > 0.0)
            i, j, c, s = (
                a[kept] for a in (data.graph.winners, data.graph.losers, data.graph.weight, data.graph.strength)
            )
        else:
            qid = data.layout.codes.tolist()
            i, j, c = listed_pairs(data.Y[:, 0], qid, data.weights, case.setting.balance)
            s = np.ones(len(c))
        return Z @ optimum(case.X[i] - case.X[j], c, s, value, self.loss)[0]


class TestPursuit(ProblemContract):
    values = np.array([1.0, 2.0, 3.0])
    holds_out = False
    exact = resolved = 1e-6

    @classmethod
    def applies(cls, name):
        return name != "preferences"  # some columns are equally good there, and either may be taken

    def candidate(self, case):
        return Pursued(kernel=RBF, setting=case.setting, pursuit=Pursuit(RBF, None, True, 1e9), n_basis=3)

    def oracle(self, case, k, value, Z):
        K, y = gaussian(case.X, case.X, 0.2), target_of(case.L[k], case.b[:, k])
        taken, coefficients, _ = greedy_by_refit(K, case.L[k], y, int(value))
        return gaussian(Z, case.X[taken], 0.2) @ coefficients[-1]


class TestForwardSelection(ProblemContract):
    """Of all four features: the path ends at the ridge solution, whatever order they were taken in."""

    values = np.array([4.0])
    holds_out = False
    exact = resolved = 1e-7
    forms = (np.asarray, sparse.csr_array)

    def candidate(self, case):
        return ForwardSelected(kernel=LINEAR, setting=case.setting, alpha=0.5, n_features=4)

    def oracle(self, case, k, value, Z):
        return Z @ ridge(case.X, case.L[k], target_of(case.L[k], case.b[:, k]), 0.5)
