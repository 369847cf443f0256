"""Who may replay: one module for each place that can hold the leases of a fleet."""
