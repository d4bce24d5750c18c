"""Ranking jokes or movies for one user from a few of the user's ratings: tables 1 to 5 of semi-supervised pursuit.

Section 6 of Tsivtsivadze and Heskes: Semi-supervised ranking pursuit. 300 reference users of a group give an item's
features (a reference user's median where a rating is missing), half of a test user's ratings are there to learn from,
the other half to be judged on, by a Gaussian kernel. Its width and all other parameters are chosen once for each group,
on hold-out users drawn in the same way. Jester's file holds the users with 36 ratings or more, so that its group 20-40
is the users with 36 to 39.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, cycle, islice
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from papers._collaborative_methods import METHODS, N_VIEWS, Array, Method, Problem, Setting
from papers._tables import MissingDataError, Table, p_text, paper_figures
from rankrls._cached import cached_property
from rankrls.comparison import compare_per_query
from rankrls.metrics import Measure

WIDTHS = tuple(2.0**k for k in range(-15, 16))
"""Of the Gaussian kernel exp(-||x - z||^2 / (2 width^2)): the paper's grid."""
GROUPS = ((20, 40), (40, 60), (60, 80))
"""Numbers of ratings of the reference users: from the first up to, not including, the second."""
MEASURES = ("disagreement", "mse")
"""The first is the paper's equation (1): a pair of equal ratings that the scores keep apart is half an error, and all
pairs are in N."""
RATED = (50, 300)
"""Numbers of ratings of the test users, both included."""
N_HALVES = 16
"""Random halves of the reference users, the same for all test users of a group."""
NOT_RATED = 99.0
TITLES = {
    "full": "disagreement error, all training ratings",
    "half": "disagreement error, half of the training ratings unlabelled",
    "mse": "mean squared error, all training ratings; parameters chosen by mean squared error",
}
_RANKING = ("RankSVM", "RankRLS", "Sparse RankRLS", "Ranking Pursuit")
CLAIMS = (
    *(("full", first, "<", second) for first in _RANKING for second in ("RLS", "Matching Pursuit")),
    ("full", "RLS", "=", "Matching Pursuit"),
    *(("full", first, "=", second) for first, second in combinations(_RANKING, 2)),
    ("full", "Ranking Pursuit", "<", "Random Subset"),
    ("full", "CRRP", "<", "RLS"),
    ("full", "CRRP", "<", "Matching Pursuit"),
    *(("half", "SS Ranking Pursuit", "<", second) for second in ("RLS", "Matching Pursuit", *_RANKING)),
    *(("mse", "CRRP", "<", second) for second in _RANKING),
    *(("mse", first, "<", "CRRP") for first in ("RLS", "Matching Pursuit")),
    ("half", "SS Ranking Pursuit", "?", "SS, nu = 0"),
    *(("half", "CoRankRLS", "?", second) for second in ("SS Ranking Pursuit", *_RANKING)),
)
"""Sections 5, 6.1 and 6.3: table, method, what the paper says of their errors, method; of those with "?" it says
nothing. "Random Subset" is the subset of regressors that section 5 compares with. That regression methods do better
than CRRP at regression is stated without a test."""


@dataclass(frozen=True)
class Ratings:
    """Who rated what: user u the items ``items[starts[u]:starts[u + 1]]`` with ``values[...]``."""

    starts: NDArray[np.int64]
    items: NDArray[np.int64]
    values: Array
    n_items: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of ratings of each user."""
        return np.diff(self.starts)

    def of(self, user: int) -> tuple[NDArray[np.int64], Array]:
        """Items that a user rated, and the ratings."""
        rows = slice(self.starts[user], self.starts[user + 1])
        return self.items[rows], self.values[rows]

    def features(self, users: NDArray[np.int64]) -> Array:
        """What these users think of every item, (items, users): a rating, or the user's median where there is none."""
        out = np.empty((self.n_items, len(users)))
        for column, user in enumerate(users):
            items, values = self.of(user)
            out[:, column] = np.median(values)
            out[items, column] = values
        return out


def read_jester(data: Path) -> Ratings:
    """jester-data-1.csv, also gzipped: a line a user, the number of jokes rated, then 100 ratings or 99."""
    for path in sorted(data.rglob("jester-data-1.csv*")):
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            table = np.loadtxt(file, delimiter=",")[:, 1:]
        users, items = np.nonzero(table != NOT_RATED)
        return _by_user(users, items, table[users, items])
    raise MissingDataError("no jester-data-1.csv or jester-data-1.csv.gz")


def read_movielens(data: Path) -> Ratings:
    """ratings.dat of MovieLens 1M: user::movie::rating::time."""
    for path in sorted(data.rglob("ratings.dat")):
        with path.open() as file:
            table = np.loadtxt((line.replace("::", ",") for line in file), delimiter=",", usecols=(0, 1, 2))
        users, movies = (np.unique(column, return_inverse=True)[1] for column in table.T[:2])
        order = np.lexsort((movies, users))
        return _by_user(users[order], movies[order], table[order, 2])
    raise MissingDataError("no ratings.dat of MovieLens 1M")


def _by_user(users: NDArray[np.int64], items: NDArray[np.int64], values: Array) -> Ratings:
    return Ratings(np.append(0, np.cumsum(np.bincount(users))), items, values, int(items.max()) + 1)


@dataclass(frozen=True)
class Sizes:
    """How much of everything; the paper's sizes."""

    users: int = 300
    repetitions: int = 10
    holdout: int = 300
    reference: int = 300


QUICK = Sizes(users=20, repetitions=1, holdout=5)


def quick_methods() -> dict[str, tuple[Method, ...]]:
    """Those that fit fastest."""
    return {
        part: tuple(m for m in rows if m.name in ("RLS", "RankRLS", "Ranking Pursuit"))
        for part, rows in METHODS.items()
    }


@dataclass(frozen=True, eq=False)
class Items:
    """One user's items as the reference users see them, (items, reference users)."""

    features: Array

    @cached_property
    def distances(self) -> Array:
        """Squared. Exactly 0 between items that no reference user has rated, whose features are equal: what is left by
        ``|x|^2 + |z|^2 - 2 x'z``, times the smallest width's 2^29, would make the kernel indefinite.
        """
        return np.asarray(cdist(self.features, self.features, "sqeuclidean"))

    @cached_property
    def distances_of_halves(self) -> list[Array]:
        """Of random halves of the reference users."""
        n = self.features.shape[1]
        rng = np.random.default_rng(0)
        parts = [self.features[:, rng.permutation(n)[: (n + 1) // 2]] for _ in range(N_HALVES)]
        return [np.asarray(cdist(part, part, "sqeuclidean")) for part in parts]


@dataclass(frozen=True)
class Task:
    """One user's items in random order: the first ``n_learn`` to learn from, the others to be judged on."""

    user: int
    items: NDArray[np.int64]
    y: Array

    @property
    def n_learn(self) -> int:
        return len(self.y) // 2

    @property
    def usable(self) -> bool:
        """Whether the ratings of every part differ: else a model cannot be fitted on it, or evaluated."""
        labelled = self.y[: self.n_learn // 2]
        parts = [self.y[self.n_learn :], *(labelled[view::N_VIEWS] for view in range(N_VIEWS))]
        return all(len(part) > 1 and part.min() < part.max() for part in parts)

    def problem(self, items: Items, width: float, half: bool) -> Problem:
        """With the Gaussian kernel; with ``half`` only half of the items to learn from are labelled."""
        kernel = lambda squared: np.exp(squared * (-0.5 / width**2))
        n_labelled = self.n_learn // 2 if half else self.n_learn
        halves = lambda: [kernel(squared) for squared in items.distances_of_halves]
        return Problem(kernel(items.distances), self.y, n_labelled, self.n_learn, halves)


Draw = tuple[Array, list[Task]]
"""Features of all items, and users."""


@dataclass(frozen=True)
class Group:
    """What was drawn for one group: for the hold-out, and for each repetition."""

    bounds: tuple[int, int]
    holdout: Draw
    repetitions: list[Draw]


def draw(ratings: Ratings, bounds: tuple[int, int], sizes: Sizes, seed: int = 0) -> Group:
    """Draw the hold-out users and those of each repetition, each with reference users of their own.

    Users are taken from one random order of all who rated enough, so that nobody is drawn twice while it lasts.
    """
    rng = np.random.default_rng([seed, *bounds])
    counts = ratings.counts
    members = np.flatnonzero((counts >= bounds[0]) & (counts < bounds[1]))
    order = rng.permutation(np.flatnonzero((counts >= RATED[0]) & (counts <= RATED[1])))
    holdout, seen = _take(ratings, iter(order), sizes.holdout, len(order), rng)
    repetitions = []
    rest = order[~np.isin(order, seen)]
    queue = cycle(rest)
    for _ in range(sizes.repetitions):
        tasks, _ = _take(ratings, queue, sizes.users, len(rest), rng)
        repetitions.append((_reference(ratings, members, tasks, sizes, rng), tasks))
    return Group(bounds, (_reference(ratings, members, holdout, sizes, rng), holdout), repetitions)


def _take(
    ratings: Ratings, order: Iterator[int], number: int, most: int, rng: np.random.Generator
) -> tuple[list[Task], list[int]]:
    """The next usable users, and all that were looked at."""
    tasks: list[Task] = []
    seen: list[int] = []
    for user in islice(order, most):
        items, values = ratings.of(user)
        shuffled = rng.permutation(len(items))
        task = Task(int(user), items[shuffled], values[shuffled])
        seen.append(task.user)
        if task.usable:
            tasks.append(task)
        if len(tasks) == number:
            return tasks, seen
    raise ValueError(f"{number} users with {RATED[0]} to {RATED[1]} ratings are needed; there are {len(tasks)}.")


def _reference(
    ratings: Ratings, members: NDArray[np.int64], tasks: list[Task], sizes: Sizes, rng: np.random.Generator
) -> Array:
    others = np.setdiff1d(members, [task.user for task in tasks])
    return ratings.features(rng.choice(others, sizes.reference, replace=False))


@dataclass(frozen=True)
class Choice:
    """Width and setting with the least mean of a measure over the hold-out users."""

    width: float
    setting: Setting
    value: float


@dataclass(frozen=True)
class Part:
    """Everything measured on one group with all, or half, of the training ratings labelled.

    Attributes
    ----------
    choices : dict from a measure to a dict from a method to its choice by that measure
    figures : dict from (measure that chose, measure) to a dict from a method to one value a test user
    sizes : dict from a method to the number of basis functions for each test user, chosen by disagreement
    users : ndarray of shape (test users,)
    """

    choices: dict[str, dict[str, Choice]]
    figures: dict[tuple[str, str], dict[str, Array]]
    sizes: dict[str, Array]
    users: NDArray[np.int64] = field(repr=False)

    def by_user(self, measure: str, method: str) -> Array:
        """One value a test user, chosen by the same measure; the mean of them for one who was drawn more than once."""
        _, user = np.unique(self.users, return_inverse=True)
        return np.bincount(user, self.figures[measure, measure][method]) / np.bincount(user)


Job = tuple[Method, list[tuple[float, list[Setting]]]]
"""A method, and the settings to try at each width."""


def run_part(
    methods: Sequence[Method], group: Group, *, half: bool, measures: Sequence[str] = MEASURES, n_jobs: int = 1
) -> Part:
    """Choose each method's width and setting on the hold-out users, once for each measure; judge on the test users."""
    choices: dict[str, dict[str, Choice]] = {measure: {} for measure in measures}
    features, tasks = group.holdout
    # A method may look at what others chose, by the same measure: these are chosen first.
    for method in sorted(methods, key=lambda method: method.after is not None):
        jobs: dict[str, Job] = {}
        for measure in measures:
            settings = method.settings({name: choice.setting for name, choice in choices[measure].items()})
            jobs[measure] = (method, [(width, settings) for width in WIDTHS])
        several = list(jobs.values()) if method.after else [jobs[measures[0]]]
        values = _judged(several, features, tasks[: method.holdout], half, n_jobs)
        for k, measure in enumerate(measures):
            flat = [(width, setting) for width, settings in jobs[measure][1] for setting in settings]
            means = values[k % len(several)][:, :, MEASURES.index(measure)].mean(axis=0)
            best = int(np.argmin(means))
            choices[measure][method.name] = Choice(*flat[best], float(means[best]))
    chosen: list[Job] = [
        (m, [(c.width, [c.setting])]) for by in measures for m in methods for c in [choices[by][m.name]]
    ]
    found = [_judged(chosen, features, tasks, half, n_jobs) for features, tasks in group.repetitions]
    values = iter([np.concatenate(runs)[:, 0] for runs in zip(*found, strict=True)])
    by_job = {(by, method.name): next(values) for by in measures for method in methods}
    figures = {
        (by, measure): {method.name: by_job[by, method.name][:, k] for method in methods}
        for by in measures
        for k, measure in enumerate(MEASURES)
    }
    sizes = {method.name: by_job[measures[0], method.name][:, -1] for method in methods}
    return Part(choices, figures, sizes, np.array([task.user for _, tasks in group.repetitions for task in tasks]))


def _judged(jobs: list[Job], features: Array, tasks: list[Task], half: bool, n_jobs: int) -> list[Array]:
    """For each job an array (tasks, widths x settings, measures and size)."""
    parts = Parallel(n_jobs=n_jobs)(delayed(_judge_task)(jobs, features, task, half) for task in tasks)
    return [np.stack([part[k] for part in parts]) for k in range(len(jobs))]


def _judge_task(jobs: list[Job], features: Array, task: Task, half: bool) -> list[Array]:
    items = Items(features[task.items])
    problems: dict[float, Problem] = {}  # the jobs share the kernel matrices of a user
    out = []
    for method, grid in jobs:
        rows: list[Array] = []
        last: Problem | None = None
        for width, settings in grid:
            if width not in problems:
                problems[width] = task.problem(items, width, half)
            problem = problems[width]
            if last is None or not _same(method, last, problem):
                values = _judge(method, problem, settings)
            rows.append(values)
            last = problem
        out.append(np.concatenate(rows))
    return out


def _same(method: Method, one: Problem, other: Problem) -> bool:
    """Whether two widths give the same kernel matrices to the last bit, so that the fitted models are the same."""
    pairs = zip((one.K, *one.halves), (other.K, *other.halves), strict=True) if method.by_halves else [(one.K, other.K)]
    return all(np.array_equal(K, L) for K, L in pairs)


def _judge(method: Method, problem: Problem, settings: list[Setting]) -> Array:
    scores, sizes = method.scores(problem, settings)
    y = problem.y[problem.n_learn :]
    error = Measure("disagreement", tied_labels="half")(y, scores)
    with np.errstate(over="ignore"):  # a ranker's scores have no level, and some settings none of its size
        squares = np.mean((scores - y[:, None]) ** 2, axis=0)
    return np.column_stack((error, squares, sizes))


def run(
    name: str,
    ratings: Ratings,
    sizes: Sizes,
    *,
    groups: Sequence[tuple[int, int]] = GROUPS,
    methods: Mapping[str, Sequence[Method]] = METHODS,
    n_jobs: int = 1,
) -> Iterator[Table]:
    """The tables of a file of ratings; ``name`` says whose figures of the paper stand beside ours."""
    full, half = {}, {}
    for bounds in groups:
        group, column = draw(ratings, bounds, sizes), f"{bounds[0]}-{bounds[1]}"
        full[column] = run_part(methods["full"], group, half=False, n_jobs=n_jobs)
        half[column] = run_part(methods["half"], group, half=True, measures=MEASURES[:1], n_jobs=n_jobs)
    for table, title in TITLES.items():
        parts, measure = half if table == "half" else full, "mse" if table == "mse" else "disagreement"
        names = [method.name for method in methods["half" if table == "half" else "full"]]
        ours = {m: {c: float(part.by_user(measure, m).mean()) for c, part in parts.items()} for m in names}
        notes = [] if table == "mse" else ["Mean number of basis functions: " + _sizes_of(parts, names)]
        for claim in CLAIMS:
            if claim[0] == table and {claim[1], claim[3]} <= set(names):
                notes.append(f"{' '.join(claim[1:])}: " + "; ".join(_verdict(claim, c, p) for c, p in parts.items()))
        yield Table(f"{name}: {title}", ours, paper_figures(name, table), 1 if table == "mse" else 3, tuple(notes))


def _sizes_of(parts: Mapping[str, Part], names: Sequence[str]) -> str:
    return ", ".join(f"{m} {'/'.join(f'{part.sizes[m].mean():.0f}' for part in parts.values())}" for m in names)


def _verdict(claim: tuple[str, str, str, str], column: str, part: Part) -> str:
    """A claim of the paper on one group, by Wilcoxon's signed ranks over the test users."""
    table, first, says, second = claim
    values = {name: part.by_user("mse" if table == "mse" else "disagreement", name) for name in (first, second)}
    (pair,) = compare_per_query(values, greater_is_better=False, n_resamples=2000, random_state=0).pairs
    differ = pair.p_wilcoxon < 0.05
    found = ("<" if pair.difference < 0.0 else ">") if differ else "="
    verdict = "" if says == "?" else " confirmed" if found == says else " not confirmed"
    return f"{column} {pair.difference:+.4f} ({pair.low:+.4f} to {pair.high:+.4f}), {p_text(pair.p_wilcoxon)}{verdict}"
