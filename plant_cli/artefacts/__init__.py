"""The files of a run folder, one module for each: its schema, how it is written and how it is read."""
