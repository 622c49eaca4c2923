"""Tf-idf vectors, for authors of shortlists."""

from plant_cli.lexical.vectors import inverse_frequency, make_vectors, unit_rows, weigh_counts

__all__ = ["inverse_frequency", "make_vectors", "unit_rows", "weigh_counts"]
