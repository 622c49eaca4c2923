"""Everything that a terminal shows: commands and flags, progress, tables, errors. Knows stages; no stage knows it."""
