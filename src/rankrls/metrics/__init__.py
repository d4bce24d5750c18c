"""Measures of a ranking's quality, per query and averaged, in the conventions of the tools that people compare with."""

from rankrls._public import publish
from rankrls.metrics import _pair_functions, _position_functions
from rankrls.metrics._evaluate import evaluate
from rankrls.metrics._measure import Measure, RankingMeasure, resolve_measure
from rankrls.metrics._pair_functions import *  # noqa: F403
from rankrls.metrics._position_functions import *  # noqa: F403
from rankrls.metrics._preferences import preference_accuracy
from rankrls.metrics._scorer import RankingScorer, make_ranking_scorer

__all__ = [
    "Measure",
    "RankingMeasure",
    "RankingScorer",
    "evaluate",
    "make_ranking_scorer",
    "preference_accuracy",
    "resolve_measure",
]
__all__ += [*_pair_functions.__all__, *_position_functions.__all__]

publish(__name__, globals())
