"""What a device does and a computation takes: one clock, one matrix rate, one count of operations and of bytes."""
