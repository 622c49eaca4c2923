"""What a terminal shows and takes: flags, tables, progress, messages."""
