"""Random and mutated input for everything that reads what a stranger wrote; each case gives a
result or a `PlantError` in four parts.
"""
