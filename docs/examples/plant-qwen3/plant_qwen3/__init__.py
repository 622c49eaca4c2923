"""Qwen3 as a backbone for `plant`: a family of models from outside."""
