"""An estimator in, held-out rankings out."""

from rankrls._public import publish
from rankrls.model_selection.pair_holdout import PairHoldout, leave_pair_out
from rankrls.model_selection.query_holdout import leave_preference_out, leave_query_out
from rankrls.model_selection.tournament import Tournament, tournament_leave_pair_out

__all__ = [
    "PairHoldout",
    "Tournament",
    "leave_pair_out",
    "leave_preference_out",
    "leave_query_out",
    "tournament_leave_pair_out",
]

publish(__name__, globals())
