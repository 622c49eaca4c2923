"""What words, titles, neighbours and linear weights say for labels, without a network: pure functions of arrays and sparse matrices."""
