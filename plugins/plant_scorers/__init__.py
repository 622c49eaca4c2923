"""Scorers: what scores labels besides the network."""
