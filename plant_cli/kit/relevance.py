"""Relevance numerics for authors of signals."""

from plant_cli.relevance.information import entropy, mutual_information

__all__ = ["entropy", "mutual_information"]
