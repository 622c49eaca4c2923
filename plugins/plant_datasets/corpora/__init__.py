"""Corpora by name: read from the local files that their publishers hand out, with licence, citation and expected counts."""
