"""Relevance: which words indicate which label, from counts to the table that stage 1 plants."""
