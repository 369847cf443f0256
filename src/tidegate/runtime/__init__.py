"""Shells around the policies for real calls: they read the clock, hold the lock, sleep and send."""
