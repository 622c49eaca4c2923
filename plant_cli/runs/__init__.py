"""Runs: folder, lock, records, recipes, what is unchanged, and how a stage is run."""
