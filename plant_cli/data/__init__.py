"""Data: tables of every format, the label index, vocabularies, words, splits, checks and
statistics.
"""
