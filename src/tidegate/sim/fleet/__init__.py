"""Many collectors, each with a backlog, and the one sink that all of them give it back to."""
