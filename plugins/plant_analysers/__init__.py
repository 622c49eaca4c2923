"""Analysers: what the forms of a word are reduced to, so that they count as one word.

`plugin` registers two: `lemmas`, from the dictionaries of simplemma, and `stems`, by the rules of
Snowball. Each takes a word and its language and gives what the word is reduced to. Which of them a
corpus gets by default follows its language, found by content (the core's `data`).

It needs simplemma and snowballstemmer, which are imported when words are first reduced; of the core
only `plant_cli.api`.
"""
