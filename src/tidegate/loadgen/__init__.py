"""Load from outside: who sends when, whatever becomes of it, and what was measured."""
