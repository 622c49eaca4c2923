"""Evaluation: metrics from counters, bootstrap, paired tests, rare-label bins and their tables."""
