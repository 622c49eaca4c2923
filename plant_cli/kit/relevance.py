"""Relevance numerics for authors of signals."""

from plant_cli.relevance.information import mutual_information

__all__ = ["mutual_information"]
