"""Phi-3 as a backbone."""
