"""What can be set on a server's door, with its default and the precedent for it.

The same record admits requests in a simulated service and in the middleware of a real one. What
goes wrong at half and at double of each default is on the policy's page in the docs.
"""

from typing import ClassVar, Final, get_args

from tidegate.settings.policies import CoDel, Gradient, Limit, Order, RateLimit, Settings
from tidegate.settings.rules import finite, lasting, one_of, whole
from tidegate.units import HOUR, MILLISECOND, SECOND, Count, Duration, Share

__all__ = ["Admission", "ClientRate", "Shares"]

_COUNT_MAX: Final = 1_000_000


class Shares(Settings, frozen=True, kw_only=True):
    """How much of the places each class may fill: `shares: {sheddable: 50%}`.

    A share counts all who are in, of whatever class: `sheddable: 80%` lets somebody sheddable in
    while fewer than 80 % of the places are taken. What is critical may fill them all. A retry ranks
    one class lower, so that `last` is the retries of what is sheddable.
    """

    default: Share = 1.0  # what nobody has ranked is the work itself; nothing is kept from it
    sheddable: Share = 0.8  # Stripe's fleet usage load shedder keeps 20 % for critical requests
    last: Share = 0.6  # as far below again; no precedent sets one

    def __post_init__(self) -> None:
        finite("default", self.default, 0, 1, "a share from 0% to 100%")
        finite("sheddable", self.sheddable, 0, self.default, "a share, at most that of default")
        finite("last", self.last, 0, self.sheddable, "a share, at most that of sheddable")


class Admission(Settings, frozen=True, kw_only=True):
    """Who is let in at the door of a server, who waits there, who is sent away.

    At most `limit` are served at once and `queue` wait for a place, none longer than `wait`; in
    which `order` and whether they still are worth serving is as for any queue. One client may have
    no more than `client_share` of the limit, those who wait included; left out, a lone client may
    have it all, and several share the waiting places and take turns.
    """

    limit: Limit = Limit(gradient=Gradient())
    queue: Count = 100  # uvicorn and others have 2048 in the kernel, where nobody can choose
    wait: Duration = SECOND  # whoever has waited a second seldom waits for another
    order: Order = "adaptive_lifo"  # Facebook (Maurer 2015)
    codel: CoDel = CoDel(target=20 * MILLISECOND, interval=200 * MILLISECOND)
    shares: Shares = Shares()
    client_share: Share | None = None

    def __post_init__(self) -> None:
        whole("queue", self.queue, 0, _COUNT_MAX, "a whole number from 0 to 1000000")
        lasting("wait", self.wait, MILLISECOND, HOUR, "a duration from 1ms to 1h")
        one_of("order", self.order, get_args(Order))
        if self.client_share is not None:
            finite("client_share", self.client_share, 0.001, 1, "a share from 0.1% to 100%")


class ClientRate(Settings, frozen=True, kw_only=True):
    """At most so many per unit of time from each client: `ClientRate(rate=10.0, burst=20)`.

    `clients` is how many are remembered at once. Who has been quiet long enough to be allowed a
    full burst need not be remembered at all.
    """

    shorthand: ClassVar[str | None] = "rate"

    rate: float
    burst: Count | None = None
    clients: Count = 16_000  # what 1 MB of nginx's limit_req_zone remembers

    def __post_init__(self) -> None:
        RateLimit(rate=self.rate, burst=self.burst)  # the same rules
        whole("clients", self.clients, 1, 100_000_000, "a whole number from 1 to 100000000")
