"""What plugin authors may use beside the contract: readers of tables, profiles of backbones, shape checks."""
