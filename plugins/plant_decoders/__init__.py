"""Decoders: networks that turn hidden states into label scores, and rank words for a label."""
