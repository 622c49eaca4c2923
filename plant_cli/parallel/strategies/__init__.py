"""Ways to share the training of one network between processes: data parallel, FSDP, DeepSpeed."""
