"""Malformed inputs kept as files, and what `plant` says of each: corpora, titles, evidence,
recipes, predictions and command lines.
"""
