"""From a description or from traces to a verdict."""
