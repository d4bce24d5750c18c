"""The figures of Tsivtsivadze and Heskes, Semi-supervised ranking pursuit: tables 1 to 5, and what they claim."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

Table = dict[str, tuple[float, float, float]]

_JESTER: Table = {
    "RLS": (0.425, 0.419, 0.383),
    "Matching Pursuit": (0.428, 0.417, 0.381),
    "RankSVM": (0.412, 0.404, 0.372),
    "RankRLS": (0.409, 0.407, 0.374),
    "Sparse RankRLS": (0.414, 0.410, 0.380),
    "Ranking Pursuit": (0.410, 0.404, 0.373),
    "CRRP": (0.413, 0.408, 0.373),
}
_JESTER_HALF: Table = {
    "RLS": (0.449, 0.434, 0.405),
    "Matching Pursuit": (0.451, 0.433, 0.404),
    "RankSVM": (0.428, 0.417, 0.391),
    "RankRLS": (0.429, 0.418, 0.393),
    "Sparse RankRLS": (0.431, 0.424, 0.397),
    "Ranking Pursuit": (0.428, 0.417, 0.393),
    "SS Ranking Pursuit": (0.419, 0.411, 0.381),
}
_JESTER_MSE: Table = {
    "RLS": (21.6, 19.3, 15.2),
    "Matching Pursuit": (20.1, 18.7, 14.9),
    "RankSVM": (34.2, 31.6, 28.9),
    "RankRLS": (33.8, 31.3, 29.2),
    "Sparse RankRLS": (36.5, 33.8, 32.9),
    "Ranking Pursuit": (34.0, 30.9, 29.1),
    "CRRP": (23.2, 20.4, 17.3),
}
_MOVIES: Table = {
    "RLS": (0.495, 0.494, 0.482),
    "Matching Pursuit": (0.494, 0.497, 0.484),
    "RankSVM": (0.481, 0.472, 0.453),
    "RankRLS": (0.479, 0.472, 0.455),
    "Sparse RankRLS": (0.484, 0.478, 0.460),
    "Ranking Pursuit": (0.480, 0.472, 0.453),
}
_MOVIES_HALF: Table = {
    "RLS": (0.497, 0.495, 0.487),
    "Matching Pursuit": (0.498, 0.495, 0.485),
    "RankSVM": (0.487, 0.479, 0.464),
    "RankRLS": (0.486, 0.479, 0.463),
    "Sparse RankRLS": (0.490, 0.485, 0.470),
    "Ranking Pursuit": (0.487, 0.479, 0.462),
    "SS Ranking Pursuit": (0.481, 0.474, 0.458),
}
TABLES: dict[str, dict[str, tuple[str, Table]]] = {
    "jester": {
        "full": ("tables 1 and 5", _JESTER),
        "half": ("table 2", _JESTER_HALF),
        "mse": ("table 5", _JESTER_MSE),
    },
    "movielens": {"full": ("table 3", _MOVIES), "half": ("table 4", _MOVIES_HALF)},
}
"""``TABLES[data][part] = (name, figures)``; figures of a method are those of the groups 20-40, 40-60 and 60-80."""


@dataclass(frozen=True)
class Claim:
    """What the paper says of two methods: that ``first`` is "better" than ``second``, or that they are "equal".

    "compared" are methods of which the paper says nothing.
    """

    part: str
    first: str
    second: str
    says: str


_REGRESSION = ("RLS", "Matching Pursuit")
_RANKING = ("RankSVM", "RankRLS", "Sparse RankRLS", "Ranking Pursuit")
CLAIMS = (
    *(Claim("full", first, second, "better") for first in _RANKING for second in _REGRESSION),
    Claim("full", "RLS", "Matching Pursuit", "equal"),
    *(Claim("full", first, second, "equal") for first, second in combinations(_RANKING, 2)),
    Claim("full", "Ranking Pursuit", "Random Subset", "better"),
    Claim("full", "CRRP", "RLS", "better"),
    Claim("full", "CRRP", "Matching Pursuit", "better"),
    *(Claim("half", "SS Ranking Pursuit", second, "better") for second in (*_REGRESSION, *_RANKING)),
    *(Claim("mse", "CRRP", second, "better") for second in _RANKING),
    *(Claim("mse", first, "CRRP", "better") for first in _REGRESSION),
    Claim("half", "SS Ranking Pursuit", "SS, nu = 0", "compared"),
    *(Claim("half", "CoRankRLS", second, "compared") for second in ("SS Ranking Pursuit", *_RANKING)),
)
"""Sections 5, 6.1 and 6.3. "Random Subset" is the subset of regressors that section 5 compares with. That regression
methods do better than CRRP at regression is said without a test."""
