"""Relevance signals: which number says how strongly a word tells of a label. Each is a pure function of one table of counts."""
