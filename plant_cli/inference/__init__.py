"""Scoring documents with a trained network, in batches, keeping only the best labels of each."""
