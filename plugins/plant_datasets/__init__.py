"""Corpora as plugin components: local files, and a generator of clinical notes."""
