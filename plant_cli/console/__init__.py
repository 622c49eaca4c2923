"""Everything that a terminal shows: commands and flags, progress, tables, errors. No stage imports it."""
