"""Training: stage 1, stage 2, the loop that both share, and plans of what they take."""
