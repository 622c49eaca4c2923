"""Which words tell of which label: counting, scoring and keeping the best words per label, exactly."""
