"""Runs: the folder of an experiment, its recipe, and how a stage is run in it."""
