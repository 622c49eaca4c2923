"""Which words indicate which label: counting, scoring and keeping the best words per label, exactly."""
