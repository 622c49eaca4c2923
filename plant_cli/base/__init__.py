"""What everything stands on: whole files, hashes, sizes, padding."""
