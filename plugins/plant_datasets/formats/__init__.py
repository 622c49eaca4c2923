"""Formats of other tools, one module each: `load` reads, `recognise` knows them by content, `write` writes what `load` reads."""
