"""The one training loop and what it needs: optimiser groups, schedules, unfreezing, checkpoints, hidden-state cache, hard negatives."""
