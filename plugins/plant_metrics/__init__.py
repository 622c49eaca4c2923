"""The field's metrics as plugin components: each family names, documents and combines the counters of `plant_cli.kit.metrics`."""
