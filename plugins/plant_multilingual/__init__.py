"""multilingual-e5-small, an encoder for about 100 languages, as a backbone: from installed packages or the original."""
