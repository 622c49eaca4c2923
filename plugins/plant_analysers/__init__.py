"""Analysers: what the forms of a word are reduced to, so that they count as one word."""
