"""The rules of the static audit, by family, and the view of a system that they share."""
