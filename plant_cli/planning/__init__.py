"""What a run will take, told before it starts: parameters, memory, disk, operations and time, from shapes instead of weights."""
