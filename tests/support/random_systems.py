"""Small systems with any mixture of options, for laws that must hold whatever is described.

A seed draws a whole system; a set of features says which of its options are kept. So a law is
tried on everything at once, and what breaks it is shrunk to the few features that are needed.
"""

from random import Random
from typing import Any

from hypothesis import strategies as st

from tidegate.settings.admission import Admission
from tidegate.settings.policies import (
    Adaptive,
    Backoff,
    Breaker,
    Budget,
    CoDel,
    Gradient,
    Hedge,
    Limit,
    Queue,
    RateLimit,
    Throttle,
    Vegas,
)
from tidegate.settings.system import (
    Action,
    Call,
    Client,
    Restart,
    Service,
    System,
    Time,
    Trigger,
)
from tidegate.units import MILLISECOND, SECOND

MS = MILLISECOND
REASONS = ("timeout", "failure", "overloaded")

FEATURES = (
    "abandoned", "actions", "admission", "backoff", "balance", "breaker", "budget", "closed",
    "codel", "contention", "deadline", "decorrelated", "door limit", "door rate", "errors", "full",
    "hedge", "idempotent", "instant", "late", "limit", "limit by latency", "network",
    "not blocking", "optional", "order", "parallel", "per request", "propagate", "queue", "rate",
    "ramp", "refusal cost", "replicas", "restart", "retry on", "second client", "some replicas",
    "thrash", "throttle", "triggers", "unlimited", "wait",
)  # fmt: skip

systems = st.builds(
    lambda seed, features: Maker(seed, features).system(),
    st.integers(0, 1 << 32),
    st.one_of(st.just(frozenset(FEATURES)), st.frozensets(st.sampled_from(FEATURES))),
)
"""Up to four services that call only later ones, one or two clients, triggers and actions."""


class Maker:
    """Draws a system. What is drawn does not depend on which features are kept."""

    def __init__(self, seed: int, features: frozenset[str]) -> None:
        self.luck = Random(seed)
        self.features = features

    def pick(self, *choices: Any) -> Any:
        return self.luck.choice(choices)

    def maybe(self, feature: str, *choices: Any, otherwise: Any = None, often: float = 0.3) -> Any:
        """One of `choices`, sometimes, and only with that feature."""
        choice, given = self.luck.choice(choices), self.luck.random() < often
        return choice if given and feature in self.features else otherwise

    def system(self) -> System:
        names = ["s0", "s1", "s2", "s3"][: self.pick(1, 2, 3, 4)]
        services = {name: self.service(name, names[i + 1 :]) for i, name in enumerate(names)}
        clients = {"ann": self.client("ann", names)}
        bob = self.maybe("second client", self.client("bob", names), often=0.5)
        if bob is not None:
            clients["bob"] = bob
        triggers: dict[str, Trigger] = {}
        for index in range(3):
            trigger = self.maybe("triggers", self.trigger(services, clients), often=0.6)
            if trigger is not None:
                triggers[f"t{index}"] = trigger
        actions: dict[str, Action] = {}
        for index in range(2):
            action = self.maybe("actions", self.action(services, clients, triggers), often=0.5)
            if action is not None:
                actions[f"a{index}"] = action
        return System(clients=clients, services=services, triggers=triggers, actions=actions)

    def service(self, name: str, later: list[str]) -> Service:
        balance = self.maybe(
            "balance", "random", "least_loaded", "shared_queue", otherwise="round_robin", often=0.6
        )
        restart = Restart(
            backlog=self.pick(1, 4, 10), down=self.pick(0, 100, 800) * MS, stuck=self.pick(0, 0, 1)
        )
        restart = self.maybe("restart", restart)
        limit = self.maybe("door limit", self.limit())
        admission = self.maybe("admission", self.admission())
        return Service(
            workers=self.maybe("unlimited", None, otherwise=self.pick(1, 1, 2, 4), often=0.2),
            blocking=not self.maybe("not blocking", True, otherwise=False, often=0.5),
            time=self.maybe("instant", None, Time(mean=0), otherwise=self.time(40), often=0.2),
            replicas=self.maybe("replicas", 2, 3, otherwise=1),
            balance=balance,
            queue=self.queue(),
            rate_limit=self.maybe("door rate", self.rate_limit()),
            limit=limit if admission is None else None,
            admission=admission,
            refusal_cost=self.maybe("refusal cost", 0.3, 1.0, otherwise=0.0),
            abandoned=self.maybe("abandoned", "skip", "cancel", otherwise="finish", often=0.5),
            errors=self.maybe("errors", 0.1, 0.7, otherwise=0.0),
            contention=self.maybe("contention", 0, 1 * MS),
            thrash=self.maybe("thrash", 0.05, otherwise=0.0),
            restart=restart,
            parallel=self.maybe("parallel", True, otherwise=False, often=0.5),
            calls={f"{name}-{to}": self.call(to) for to in later if self.luck.random() < 0.7},
        )

    def admission(self) -> Admission:
        return Admission(
            limit=self.limit(),
            queue=self.pick(0, 2, 20),
            wait=self.pick(10, 100, 1000) * MS,
            order=self.pick("fifo", "lifo", "adaptive_lifo"),
            codel=CoDel(target=self.pick(5, 30) * MS, interval=50 * MS),
            client_share=self.pick(None, 0.5),
        )

    def queue(self) -> Queue:
        return Queue(
            limit=self.maybe("queue", 0, 3, 20, often=0.5),
            order=self.maybe("order", "lifo", "adaptive_lifo", otherwise="fifo"),
            full=self.maybe("full", "silence", otherwise="refuse"),
            codel=self.maybe("codel", CoDel(target=5 * MS, interval=50 * MS)),
            late=self.maybe("late", True, otherwise=False),
        )

    def client(self, name: str, names: list[str]) -> Client:
        targets = sorted(set(self.luck.choices(names, k=2)))
        calls = {f"{name}-{target}": self.call(target) for target in targets}
        users, rate = self.maybe("closed", 1, 10, 40, often=0.5), self.pick(5.0, 40.0, 120.0)
        if users is not None:
            return Client(users=users, think=Time(mean=100 * MS), calls=calls)
        return Client(rate=rate, calls=calls)

    def call(self, to: str) -> Call:
        """Every call has a timeout, else one that is lost in silence would never end."""
        optional = self.maybe("optional", True, otherwise=False)
        wait = not self.maybe("wait", True, otherwise=False, often=0.5)
        return Call(
            to=to,
            per_request=self.maybe("per request", 0.3, 2.5, 0.0, otherwise=1.0),
            optional=optional,
            wait=wait or not optional,
            attempts=self.pick(1, 2, 3, 4),
            timeout=self.pick(20, 50, 150, 400) * MS,
            deadline=self.maybe("deadline", 30 * MS, 150 * MS, 900 * MS),
            propagate=self.maybe("propagate", True, otherwise=False, often=0.5),
            backoff=self.maybe("backoff", self.backoff()),
            retry_on=self.maybe("retry on", ("timeout",), ("overloaded",), (), otherwise=REASONS),
            budget=self.maybe(
                "budget", *(Budget(ratio=b, window=2 * SECOND) for b in (0.0, 0.1, 0.5, 2.0))
            ),
            breaker=self.maybe("breaker", self.breaker()),
            limit=self.maybe("limit", self.limit()),
            rate_limit=self.maybe("rate", self.rate_limit()),
            throttle=self.maybe("throttle", self.throttle()),
            hedge=self.maybe("hedge", Hedge(after=self.pick(1, 20, 100) * MS, max=self.pick(1, 2))),
            network=self.maybe("network", self.time(20)),
            idempotent=not self.maybe("idempotent", True, otherwise=False),
        )

    def time(self, most: int) -> Time:
        length = self.pick(1, most // 2, most) * MS
        return self.pick(
            Time(mean=length), Time(constant=length), Time(median=length, p99=4 * length)
        )

    def rate_limit(self) -> RateLimit:
        return RateLimit(rate=self.pick(1.0, 20.0, 100.0), burst=self.pick(None, 1, 20))

    def limit(self) -> Limit:
        adaptive = Limit(adaptive=Adaptive(start=4, max=20, latency=30 * MS))
        law = self.pick(
            Limit(gradient=Gradient(start=4, max=20, samples=5)),
            Limit(vegas=Vegas(start=4, max=20, samples=5, baseline=SECOND)),
        )
        law = self.maybe("limit by latency", law, otherwise=adaptive, often=0.5)
        return self.pick(Limit(max=1), Limit(max=5), Limit(max=30), law)

    def throttle(self) -> Throttle:
        return Throttle(window=SECOND, volume=self.pick(1, 20), most=self.pick(0.5, 1.0))

    def backoff(self) -> Backoff:
        base = self.pick(0, 20, 300) * MS
        if jitter := self.maybe("decorrelated", "decorrelated"):
            return Backoff(base=base, jitter=jitter)
        return Backoff(
            base=base, factor=self.pick(1.0, 2.0), jitter=self.pick("full", "equal", "none")
        )

    def breaker(self) -> Breaker:
        return Breaker(
            failures=self.pick(0.1, 0.5, 1.0),
            window=SECOND,
            volume=self.pick(1, 5, 20),
            open_for=self.pick(50, 300, 800) * MS,
            probes=self.pick(1, 2, 3),
            lease=self.pick(50, 2000) * MS,
            ramp=self.pick(0, 300, 1000) * MS,
        )

    def trigger(self, services: dict[str, Service], clients: dict[str, Client]) -> Trigger:
        """One of any kind, in the first four seconds."""
        lasting = self.pick(50, 400, 1500, 2500) * MS
        common = {
            "at": self.pick(0, 700, 1300, 2000, 3100) * MS,
            "for_": lasting,
            "ramp": self.maybe("ramp", lasting // 3, lasting),
        }
        kind = self.pick("service", "service", "service", "client", "call")
        if kind == "client":
            return Trigger(client=self.pick(*clients), load=self.pick(0.0, 0.5, 3.0), **common)
        if kind == "call":
            effect = self.pick(
                {"latency": 50 * MS},
                {"per_request": 3.0},
                {"per_request": 0.0},
                {"rate_limit": RateLimit(rate=20.0)},
            )
            return Trigger(call=self.pick(*_calls(services, clients)), **effect, **common)
        effect = self.pick(
            {"slowdown": 5.0},
            {"freeze": True},
            {"freeze": True},
            {"capacity": 0.0},
            {"capacity": 0.4},
            {"capacity": 0.9},
            {"errors": 0.5},
            {"latency": 50 * MS},
            {"rate_limit": RateLimit(rate=20.0)},
        )
        some = self.maybe("some replicas", 1, 2)
        return Trigger(service=self.pick(*services), replicas=some, **effect, **common)

    def action(
        self,
        services: dict[str, Service],
        clients: dict[str, Client],
        triggers: dict[str, Trigger],
    ) -> Action:
        kind = self.pick("service", "client", "call", "ends")
        if kind == "ends" and triggers:
            return Action(ends=self.pick(*triggers))
        if kind == "client":
            return Action(client=self.pick(*clients), load=self.pick(0.5, 2.0))
        if kind == "call":
            effect = self.pick({"attempts": 1}, {"attempts": 5}, {"open": True}, {"remove": True})
            return Action(call=self.pick(*_calls(services, clients)), **effect)
        effect = self.pick(
            {"capacity": 2.0},
            {"capacity": 0.5},
            {"flush": True},
            {"reset": True},
            {"rate_limit": RateLimit(rate=50.0)},
        )
        return Action(service=self.pick(*services), **effect)


def _calls(services: dict[str, Service], clients: dict[str, Client]) -> list[str]:
    return [name for part in (*clients.values(), *services.values()) for name in part.calls]
