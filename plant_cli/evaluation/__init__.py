"""Evaluation: metrics from counters, bootstrap, paired tests, thresholds and their tables."""
