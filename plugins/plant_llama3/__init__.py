"""LLaMA 3 as a backbone."""
