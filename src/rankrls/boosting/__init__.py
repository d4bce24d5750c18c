"""RankBoost.

============  =======================================================================================
``boosting``  pair weights that factorise, and the rounds
``stumps``    features as bins; threshold stumps and their sums
============  =======================================================================================
"""
