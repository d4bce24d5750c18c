"""What estimators are given: parameters, items, labels, views, checked once."""
