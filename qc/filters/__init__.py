"""What each filter looks for; all follow scikit-learn's contract for outlier detectors."""
