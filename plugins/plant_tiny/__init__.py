"""A two-layer transformer over hashed words that trains from scratch: no download, any language."""
