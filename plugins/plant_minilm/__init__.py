"""The real all-MiniLM-L6-v2 encoder as a backbone, from an installed package: no download at run time."""
