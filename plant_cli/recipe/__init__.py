"""Recipes: strict YAML, layers of values that know where they came from, and the validated steps of an experiment."""
