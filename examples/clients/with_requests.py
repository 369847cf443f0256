"""Guard a session of requests: mount an adapter.

python examples/clients/with_requests.py http://127.0.0.1:8000
"""

import sys

import requests

import tidegate
from tidegate.adapters.requests import Adapter


def main(shop: str) -> str:
    """No timeout in sight, and yet none of the calls can hang."""
    session = requests.Session()
    session.mount("https://", Adapter())
    session.mount("http://", Adapter())
    with session:
        shelf = session.get(f"{shop}/shelf")
        try:
            with tidegate.deadline(0.5):
                session.get(f"{shop}/report")
        except tidegate.DeadlineExceeded:
            return f"{shelf.status_code}, no report today"
        return f"{shelf.status_code}, with a report"


if __name__ == "__main__":
    print(main(sys.argv[1]))
