"""Parse, call, print, exit code. Nothing is decided here."""
