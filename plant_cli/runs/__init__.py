"""Run folders: create, lock, resume, hash, refuse; and typed schemas of their records."""
