"""The network: backbone and decoder, label attention and ranking losses with their kernels,
cached states.
"""
