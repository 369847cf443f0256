"""Where records go: one module for each kind of sink."""
