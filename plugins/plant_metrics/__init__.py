"""The field's metrics as plugin components: each family names, documents and combines the counters of `plant_cli.evaluation.counters`.

Every `compute_…` takes predictions beside gold (N documents) and the family's options, and returns one metric for each name.
"""
