"""A prepared corpus: words, checks, label index, splits by reference and their statistics."""
