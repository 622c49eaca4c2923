"""Several processes that work together: what the launcher says, the process group, and how a network is shared."""
