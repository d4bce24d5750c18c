"""The estimators, a file each: a thin scikit-learn skin over problems, comparisons and the search."""
