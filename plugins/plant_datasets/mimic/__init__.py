"""MIMIC-III and MIMIC-IV from the folders of PhysioNet: notes, codes, splits and the subsets of the literature."""
