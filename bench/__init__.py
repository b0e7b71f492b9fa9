"""Measurements: ratios against the alternative in the same run (``make bench``)."""
