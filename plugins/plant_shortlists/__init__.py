"""Shortlists: what proposes the labels worth scoring where there are too many to score them all."""
