"""Assembling backbone, decoder and label parameters into the network that is trained, saved and loaded."""
