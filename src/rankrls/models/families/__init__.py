"""What a family of estimators shares: prediction, and how it chooses."""
