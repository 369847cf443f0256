"""Virtual time on top of the core: the same policies, a clock that jumps, seeded luck."""
