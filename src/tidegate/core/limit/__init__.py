"""Estimators: fed one sample after another, they say how many may be in flight.

Each has `limit`, the number now, and `on_sample(now, rtt, inflight, outcome)`, which gives the
next. They hand out no permits: `ConcurrencyLimiter` does.
"""
