"""A Flask application behind a door, for a server that gives each request a thread.

    gunicorn --worker-class gthread --threads 12 examples.servers.flask_app:app

Eight requests are served at once. The four other threads refuse, and answer the health checks.
"""

from flask import Flask, jsonify
from flask.wrappers import Response

from tidegate.server.wsgi import LoadShedder

app = Flask(__name__)


@app.get("/shop")
def shop() -> Response:
    """What a customer sees."""
    return jsonify(goods=["bread", "wine"])


@app.get("/healthz")
def alive() -> Response:
    """Never refused."""
    return jsonify(alive=True)


# Flask's own way to put something around an application: `app` stays a Flask object.
app.wsgi_app = LoadShedder(app.wsgi_app, limit=8)  # type: ignore[method-assign]
