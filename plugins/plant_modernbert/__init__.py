"""ModernBERT as a backbone."""
