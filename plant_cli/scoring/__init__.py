"""Scores of labels for documents: scorers, fusion and calibration, the best labels, predictions, opened models."""
