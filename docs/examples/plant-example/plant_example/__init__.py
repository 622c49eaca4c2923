"""An outside plugin for `plant`, complete and small enough to be read in one go."""
