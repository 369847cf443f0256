"""How does a guard get around the calls of an HTTP or gRPC client that exists already?

One module for each client, and one for each library that retries. Each is an extra of its own and
is imported by its name: `from tidegate.adapters import httpx2`. None is imported by `tidegate`.
"""
