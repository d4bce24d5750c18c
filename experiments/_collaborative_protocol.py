"""The protocol of section 6 of Tsivtsivadze and Heskes: draw users, choose once a group, judge on test users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise

import numpy as np
from _collaborative_problem import Items, Method, Problem, Setting
from _collaborative_views import N_VIEWS
from _ratings_data import Ratings
from joblib import Parallel, delayed
from numpy.typing import NDArray

from rankrls.metrics import Measure

__all__ = [
    "GROUPS",
    "MEASURES",
    "WIDTHS",
    "Choice",
    "Group",
    "Part",
    "Sizes",
    "Task",
    "draw",
    "run_part",
]

WIDTHS = tuple(2.0**k for k in range(-15, 16))
"""Of the Gaussian kernel exp(-||x - z||^2 / (2 width^2)): the paper's grid."""
GROUPS = ((20, 40), (40, 60), (60, 80))
"""Numbers of ratings of the reference users: from the first up to, not including, the second."""
MEASURES = ("disagreement", "mse")
"""The first is the paper's equation (1): a pair of equal ratings that the scores keep apart is half an error, and all
pairs are in N."""
_RATED = (50, 300)
"""Numbers of ratings of the test users, both included."""
_CHUNK = 20


@dataclass(frozen=True)
class Sizes:
    """How much of everything; the paper's sizes."""

    users: int = 300
    repetitions: int = 10
    holdout: int = 300
    reference: int = 300
    seed: int = 0


@dataclass(frozen=True)
class Task:
    """One user's items in random order: the first ``n_learn`` to learn from, the others to be judged on."""

    user: int
    items: NDArray[np.int64]
    y: NDArray[np.float64]

    @property
    def n_learn(self) -> int:
        return len(self.y) // 2

    def described(self, features: NDArray[np.float64]) -> Items:
        """The user's items by the features of all."""
        return Items(features[self.items])

    def problem(self, items: Items, width: float, half: bool) -> Problem:
        """With the Gaussian kernel; with ``half`` only half of the items to learn from are scored."""
        kernel = lambda squared: np.exp(squared * (-0.5 / width**2))
        return Problem(
            kernel(items.distances),
            self.y,
            self.n_learn // 2 if half else self.n_learn,
            self.n_learn,
            lambda: [kernel(squared) for squared in items.distances_of_halves],
        )


@dataclass(frozen=True)
class Group:
    """What was drawn for one group: features of all items and the users, for the hold-out and each repetition.

    ``skipped`` users have a part whose ratings are all equal: nothing can be learnt from it, or judged on it.
    """

    bounds: tuple[int, int]
    eligible: int
    members: int
    skipped: int
    holdout: tuple[NDArray[np.float64], list[Task]]
    repetitions: list[tuple[NDArray[np.float64], list[Task]]]


@dataclass(frozen=True)
class Choice:
    """Width and setting with the least mean of a measure over the hold-out users."""

    width: float
    setting: Setting
    value: float


@dataclass(frozen=True)
class Part:
    """Everything measured on one group with all, or half, of the training ratings scored.

    Attributes
    ----------
    choices : dict from a measure to a dict from a method to its choice by that measure
    figures : dict from (measure that chose, measure) to a dict from a method to one value a test user
    sizes : dict from a method to the number of basis functions for each test user, chosen by disagreement
    users : ndarray of shape (test users,)
    repetition : ndarray of shape (test users,)
    """

    choices: dict[str, dict[str, Choice]]
    figures: dict[tuple[str, str], dict[str, NDArray[np.float64]]]
    sizes: dict[str, NDArray[np.float64]]
    users: NDArray[np.int64] = field(repr=False)
    repetition: NDArray[np.int64] = field(repr=False)


def draw(ratings: Ratings, bounds: tuple[int, int], sizes: Sizes) -> Group:
    """Draw the hold-out users and those of each repetition, each with reference users of their own.

    Users are taken from one random order of all who rated enough, so that nobody is drawn twice while it lasts.
    """
    rng = np.random.default_rng([sizes.seed, *bounds])
    counts = ratings.counts
    members = np.flatnonzero((counts >= bounds[0]) & (counts < bounds[1]))
    eligible = np.flatnonzero((counts >= _RATED[0]) & (counts <= _RATED[1]))
    needed = sizes.holdout + sizes.users
    if len(eligible) < needed:
        raise ValueError(
            f"{needed} users with {_RATED[0]} to {_RATED[1]} ratings are needed for a hold-out and a test; "
            f"{ratings.name} has {len(eligible)}. Ask for fewer with --users and --holdout."
        )
    order = rng.permutation(eligible)
    skipped: set[int] = set()
    holdout = _take(ratings, iter(order), sizes.holdout, len(order), rng, skipped)
    rest = order[~np.isin(order, [*skipped, *(task.user for task in holdout)])]
    queue = cycle(rest)
    repetitions = []
    for _ in range(sizes.repetitions):
        tasks = _take(ratings, queue, sizes.users, len(rest), rng, skipped)
        repetitions.append((_reference(ratings, members, tasks, sizes, rng), tasks))
    return Group(
        bounds,
        len(eligible),
        len(members),
        len(skipped),
        (_reference(ratings, members, holdout, sizes, rng), holdout),
        repetitions,
    )


def _take(
    ratings: Ratings, order: Iterator[int], number: int, most: int, rng: np.random.Generator, skipped: set[int]
) -> list[Task]:
    tasks: list[Task] = []
    for user in islice(order, most):
        items, values = ratings.of(user)
        shuffled = rng.permutation(len(items))
        task = Task(int(user), items[shuffled], values[shuffled])
        if _usable(task):
            tasks.append(task)
        else:
            skipped.add(int(user))
        if len(tasks) == number:
            return tasks
    raise ValueError(f"{number} users whose ratings differ in every part are needed; there are {len(tasks)}.")


def _usable(task: Task) -> bool:
    scored = task.y[: task.n_learn // 2]
    parts = [task.y[task.n_learn :], *(scored[view::N_VIEWS] for view in range(N_VIEWS))]
    return all(len(part) > 1 and part.min() < part.max() for part in parts)


def _reference(
    ratings: Ratings, members: NDArray[np.int64], tasks: list[Task], sizes: Sizes, rng: np.random.Generator
) -> NDArray[np.float64]:
    others = np.setdiff1d(members, [task.user for task in tasks])
    if len(others) < sizes.reference:
        raise ValueError(
            f"{sizes.reference} reference users are needed; {ratings.name} has {len(others)} in this group. "
            "Ask for fewer with --reference."
        )
    return ratings.features(rng.choice(others, sizes.reference, replace=False))


Job = tuple[Method, list[tuple[float, list[Setting]]]]
"""A method, and the settings to try at each width."""


def run_part(methods: Sequence[Method], group: Group, *, half: bool, measures: Sequence[str], n_jobs: int) -> Part:
    """Choose each method's width and setting on the hold-out users, once for each measure; judge on the test users."""
    choices: dict[str, dict[str, Choice]] = {measure: {} for measure in measures}
    # A method may look at what others chose: these are chosen first.
    for waiting in (False, True):
        batch = [m for m in methods if (m.after is not None) is waiting]
        for measure in measures if waiting else measures[:1]:
            for count in dict.fromkeys(m.holdout for m in batch):
                several = [(m, m.settings(choices[measure])) for m in batch if m.holdout == count]
                jobs: list[Job] = [(m, [(width, settings) for width in WIDTHS]) for m, settings in several]
                features, tasks = group.holdout
                values = _judged(jobs, features, tasks[:count], half, n_jobs)
                for by in [measure] if waiting else measures:
                    _choose(jobs, values, by, choices[by])
    figures: dict[tuple[str, str], dict[str, list[NDArray[np.float64]]]] = {
        (by, measure): {m.name: [] for m in methods} for by in measures for measure in MEASURES
    }
    sizes: dict[str, list[NDArray[np.float64]]] = {m.name: [] for m in methods}
    users, repetition = [], []
    chosen: list[Job] = [
        (m, [(c.width, [c.setting])]) for by in measures for m in methods for c in [choices[by][m.name]]
    ]
    for number, (features, tasks) in enumerate(group.repetitions):
        values = iter(_judged(chosen, features, tasks, half, n_jobs))
        for by in measures:
            for method in methods:
                value = next(values)
                for k, measure in enumerate(MEASURES):
                    figures[by, measure][method.name].append(value[:, 0, k])
                if by == measures[0]:
                    sizes[method.name].append(value[:, 0, len(MEASURES)])
        users += [task.user for task in tasks]
        repetition += [number] * len(tasks)
    return Part(
        choices,
        {key: {name: np.concatenate(v) for name, v in table.items()} for key, table in figures.items()},
        {name: np.concatenate(v) for name, v in sizes.items()},
        np.array(users),
        np.array(repetition),
    )


def _choose(jobs: list[Job], values: list[NDArray[np.float64]], by: str, choices: dict[str, Choice]) -> None:
    """The least mean over the users; of equal ones the first."""
    for (method, grid), value in zip(jobs, values, strict=True):
        flat = [(width, setting) for width, settings in grid for setting in settings]
        means = value[:, :, MEASURES.index(by)].mean(axis=0)
        best = int(np.argmin(means))
        choices[method.name] = Choice(*flat[best], float(means[best]))


def _judged(
    jobs: list[Job], features: NDArray[np.float64], tasks: list[Task], half: bool, n_jobs: int
) -> list[NDArray[np.float64]]:
    """For each job an array (tasks, widths x settings, measures and size)."""
    starts = list(range(0, len(tasks), _CHUNK)) + [len(tasks)]
    parts = Parallel(n_jobs=n_jobs)(
        delayed(_judge_chunk)(jobs, features, tasks[start:stop], half) for start, stop in pairwise(starts)
    )
    return [np.concatenate([part[k] for part in parts]) for k in range(len(jobs))]


def _judge_chunk(
    jobs: list[Job], features: NDArray[np.float64], tasks: list[Task], half: bool
) -> list[NDArray[np.float64]]:
    out: list[list[NDArray[np.float64]]] = [[] for _ in jobs]
    for task in tasks:
        items = task.described(features)
        problems: dict[float, Problem] = {}  # the methods share the kernel matrices of a user
        for k, (method, grid) in enumerate(jobs):
            rows: list[NDArray[np.float64]] = []
            last: tuple[Problem, list[Setting]] | None = None
            for width, settings in grid:
                if width not in problems:
                    problems[width] = task.problem(items, width, half)
                problem = problems[width]
                if last and last[1] is settings and method.sees_the_same(last[0], problem):
                    rows.append(rows[-1])
                else:
                    rows.append(_judge(method, problem, settings))
                last = problem, settings
            out[k].append(np.concatenate(rows))
    return [np.stack(rows) for rows in out]


def _judge(method: Method, problem: Problem, settings: list[Setting]) -> NDArray[np.float64]:
    scores, sizes = method.scores(problem, settings)
    y = problem.y[problem.n_learn :]
    error = Measure("disagreement", tied_labels="half")(y, scores)
    with np.errstate(over="ignore"):  # a ranker's scores have no level, and some settings none of its size
        squares = np.mean((scores - y[:, None]) ** 2, axis=0)
    return np.column_stack((error, squares, sizes))
