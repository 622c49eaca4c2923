"""How a stage is run: the context it is given, one attempt at it, and all steps of a recipe."""
