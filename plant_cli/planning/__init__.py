"""What a stage will take before it starts: parameters and their memory from shapes, the rest from a short measurement."""
