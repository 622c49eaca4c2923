"""Mistral 7B and its kin as a backbone."""
