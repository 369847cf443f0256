"""How long does this piece of work take, this time?"""

from collections.abc import Callable
from math import exp, log
from random import Random

from tidegate.settings.system import Time

__all__ = ["drawer"]


def drawer(time: Time | None, luck: Random) -> Callable[[], float]:
    """A function that draws one duration in nanoseconds; always zero for None."""
    if time is None:
        return lambda: 0.0
    if time.constant is not None:
        constant = float(time.constant)
        return lambda: constant
    if time.mean is not None:
        mean, uniform = float(time.mean), luck.random
        return lambda: -log(1.0 - uniform()) * mean
    assert time.median is not None
    mu, sigma, gauss = log(time.median), time.sigma, luck.gauss
    return lambda: exp(gauss(mu, sigma))
