"""Relevance signals: which number measures how strongly a word indicates a label. Each is a pure function of one table of counts."""
