"""Scorers: what speaks for a label besides the network."""
