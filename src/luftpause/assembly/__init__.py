"""The only place that constructs: which adapter stands behind which port."""
