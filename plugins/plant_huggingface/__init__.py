"""Any Hugging Face encoder or causal model, from a local folder or a hub id, as a backbone."""
