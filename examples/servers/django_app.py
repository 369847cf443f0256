"""A Django site behind a door, in one file.

    gunicorn --worker-class gthread --threads 12 examples.servers.django_app:application
    uvicorn examples.servers.django_app:asgi_application

In a project of one's own the last lines belong into `wsgi.py` and `asgi.py`.
"""

from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, JsonResponse
from django.urls import path

from tidegate.server import asgi, wsgi

settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="for an example that keeps no secrets",
)


def shop(request: HttpRequest) -> JsonResponse:
    """What a customer sees."""
    return JsonResponse({"goods": ["bread", "wine"]})


def alive(request: HttpRequest) -> JsonResponse:
    """Never refused."""
    return JsonResponse({"alive": True})


urlpatterns = [path("shop", shop), path("healthz", alive)]

application = wsgi.LoadShedder(get_wsgi_application(), limit=8)
asgi_application = asgi.LoadShedder(get_asgi_application(), limit=8)
