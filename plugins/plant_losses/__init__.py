"""Losses of stage 1 (ranking words for a label) and of stage 2 (scoring labels)."""
