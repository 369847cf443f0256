"""The parts of a simulated system: callers, services, clients. Each is handed loop and luck."""
