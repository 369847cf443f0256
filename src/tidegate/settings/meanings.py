"""What does each key of the system file mean, in one line, with an example?

One table for three readers: the JSON Schema (which editors show while one types), the reference in
`docs/system-file.md`, and whoever prints help. A test fails when a record has a key that is not
here, or the other way round. Examples are values as they stand in a file, and are loaded by a test.
"""

from typing import Final, NamedTuple

from tidegate.settings import admission, policies, spool, system
from tidegate.settings.policies import Settings

__all__ = ["MEANINGS", "Meaning"]


class Meaning(NamedTuple):
    """What a key means; `otherwise` says what holds when it is left out and its default is none."""

    says: str
    example: str
    otherwise: str = "none"


M = Meaning

MEANINGS: Final[dict[type[Settings], dict[str, Meaning]]] = {
    system.System: {
        "tidegate": M("version of this format", "1"),
        "clients": M("who sends requests, by name", "{users: {rate: 100/s, calls: {shop: {}}}}"),
        "services": M("what answers them, by name", "{shop: {workers: 10, time: 20ms}}"),
        "triggers": M(
            "what may go wrong for a while, by name",
            "{slow: {service: shop, slowdown: 4x, for: 60s}}",
            "a freeze, half capacity and double load at each service are assumed",
        ),
        "actions": M(
            "what people may do to get out, by name",
            "{add machines: {service: shop, capacity: 200%}}",
        ),
        "journeys": M("what people want done, by name", "{buy: {client: users}}"),
        "objective": M(
            "when a client is served well enough",
            "{goodput: 99%, within: 30s}",
            "as its keys say",
        ),
        "spool": M(
            "what keeps records that must not be lost, and replays them",
            "{lanes: {events: {to: 'file:events.jsonl'}}}",
        ),
    },
    system.Client: {
        "rate": M(
            "requests per second that come whatever happens (open, Poisson arrivals)", "500/s"
        ),
        "users": M(
            "people who each wait for the answer, then think (closed); instead of rate", "200"
        ),
        "think": M("a user's pause between an answer and the next request; with users", "5s"),
        "calls": M("the calls of one request, one after another", "{shop: {timeout: 2s}}"),
    },
    system.Service: {
        "workers": M(
            "threads, processes or connections of each replica; a request takes one when its own"
            " work starts",
            "25",
            "no limit",
        ),
        "blocking": M(
            "true: the worker is held until the answer, through calls and backoff; false: it is"
            " freed after own work",
            "false",
        ),
        "time": M("own work of one request, without its calls", "50ms", "no work"),
        "replicas": M("copies, each with its own workers and queue", "4"),
        "balance": M("how a request finds its replica", "least_loaded"),
        "queue": M(
            "waiting places of each replica, beside those in service; 0 is none",
            "100",
            "unbounded",
        ),
        "rate_limit": M("most requests admitted per second, for all replicas", "600/s"),
        "limit": M("most requests admitted at a time, in each replica", "50"),
        "admission": M(
            "who is let in, who waits at the door, who is sent away, in each replica: as the"
            " middleware of a real server does",
            "{limit: 40, queue: 100}",
        ),
        "refusal_cost": M(
            "share of `time` that a refusal takes from the same workers, before queued work; with"
            " no worker or waiting place for it, nothing is said and the caller's timer runs",
            "5%",
        ),
        "abandoned": M(
            "a request whose caller has left: finish (served in full, its own calls too), skip"
            " (dropped at its turn), cancel (stopped, downstream too)",
            "skip",
        ),
        "errors": M("share of requests that fail by themselves, in health", "0.1%"),
        "contention": M(
            "extra own work for each request that the replica holds, waiting or in service", "1ms"
        ),
        "thrash": M("extra own work for each request that waits, as a share of it", "0.1%"),
        "restart": M("the service restarts itself when overloaded", "{backlog: 5000}"),
        "parallel": M("calls are made together instead of one after another", "true"),
        "calls": M("the calls of one request, after its own work", "{db: {timeout: 1s}}"),
        "address": M(
            "where it really is, for verbs that touch it; check does not look",
            "http://127.0.0.1:9000",
        ),
    },
    system.Call: {
        "to": M("the service called", "shop", "the call's own name"),
        "per_request": M(
            "calls per request: 30% a chance of one, 3 three, 2.5 two and half a chance of a third",
            "30%",
        ),
        "optional": M(
            "true: its failure does not fail the request, which counts as degraded; it is still"
            " waited for",
            "true",
        ),
        "wait": M("false: nobody waits for it; needs optional", "false"),
        "attempts": M(
            "tries in all, the first included; 1 is no retry",
            "3",
            "`1`; `2` with `protect: default`",
        ),
        "timeout": M(
            "of one attempt, from send to full answer: network, queue, work and the callee's calls",
            "5s",
            "waits for ever",
        ),
        "deadline": M(
            "of the whole call with its waits: nothing starts after it, the last timeout is cut"
            " to fit",
            "10s",
        ),
        "propagate": M("sends what remains of the time; the callee takes the smaller", "true"),
        "backoff": M("wait before the next attempt, after a known outcome", "100ms", "at once"),
        "retry_on": M(
            "which outcomes are tried again; never an open breaker, a spent budget or a passed"
            " deadline",
            "[timeout, overloaded]",
        ),
        "budget": M("retries allowed, as a share of first attempts", "10%", "no bound"),
        "hedge": M("asks again beside an attempt that is not answered after so long", "100ms"),
        "throttle": M(
            "calls wanted per call accepted, beyond which a share of them stays at home", "2x"
        ),
        "breaker": M("share of failures at which calls stop", "50%"),
        "limit": M("most calls in flight at a time, from one caller replica", "50"),
        "rate_limit": M("most calls per second, from one caller replica", "100/s"),
        "network": M("time on the wire, each way", "2ms", "no time"),
        "idempotent": M(
            "false: repeated only when refused, never when it may have been done", "false"
        ),
        "protect": M(
            "default: adds two attempts with backoff and a 10 % budget, a breaker, a limit that"
            " finds itself and a timeout of 10 s where the file says nothing itself",
            "default",
        ),
    },
    system.Time: {
        "mean": M("mean of an exponential; a bare duration means this", "50ms"),
        "constant": M("always the same", "50ms"),
        "median": M("of a lognormal; with p99", "40ms"),
        "p99": M("99th percentile of that lognormal", "300ms"),
    },
    admission.Admission: {
        "limit": M("most requests served at a time", "40", "it finds itself"),
        "queue": M("waiting places at the door; when full, refuse", "50"),
        "wait": M("longest wait at the door", "500ms"),
        "order": M(
            "who of one caller's requests is next: fifo, lifo (newest first), adaptive_lifo (newest"
            " first while more wait than are served)",
            "fifo",
        ),
        "codel": M(
            "drops whom it is too late to serve; what is beyond one service time counts",
            "{target: 50ms, interval: 500ms}",
            "20ms and 200ms",
        ),
        "shares": M(
            "of the places, how many each class may fill; a retry ranks one class lower",
            "{sheddable: 50%, last: 30%}",
            "as its keys say",
        ),
        "client_share": M(
            "of the limit, how much the requests of one call may have, those that wait included",
            "50%",
        ),
    },
    admission.Shares: {
        "default": M("of all places, for requests that nobody has ranked", "90%"),
        "sheddable": M("of all places, for their retries, and for what is sheddable", "50%"),
        "last": M("of all places, for retries of what is sheddable", "30%"),
    },
    policies.Queue: {
        "limit": M("waiting places; a bare number means this", "100", "unbounded"),
        "order": M(
            "who is next: fifo, lifo (newest first), adaptive_lifo (newest first while the queue is"
            " longer than the workers)",
            "adaptive_lifo",
        ),
        "full": M(
            "when full: refuse answers at once, silence says nothing and the caller's timer runs",
            "silence",
        ),
        "codel": M("drop what waited too long while the delay stays high", "{target: 5ms}"),
        "late": M(
            "drop at its turn what can no longer finish before its caller leaves, where the call"
            " says when that is (`propagate`)",
            "true",
        ),
    },
    policies.CoDel: {
        "target": M("delay that a standing queue may have", "5ms"),
        "interval": M("how long it may stay above that", "100ms"),
    },
    policies.Budget: {
        "ratio": M("retries per first attempt; a bare share means this", "10%"),
        "window": M("how long first attempts count", "10s"),
    },
    policies.Backoff: {
        "base": M("wait before the second attempt; a bare duration means this", "100ms"),
        "factor": M("each wait is this many times the one before; not decorrelated", "2x"),
        "max": M("no wait is longer", "20s"),
        "jitter": M(
            "full: from zero to the wait; equal: from half of it; none: as it is; decorrelated:"
            " from base to three times the wait before",
            "full",
        ),
    },
    policies.Hedge: {
        "after": M("wait for an answer before it is asked for again; a bare duration", "100ms"),
        "max": M("how many more may be asked for beside one attempt", "1"),
    },
    policies.Throttle: {
        "ratio": M("calls wanted per call accepted; a bare factor means this", "2x"),
        "window": M("how long calls count", "10s"),
        "volume": M("fewest calls in the window before any is kept back", "20"),
        "most": M("largest share that is kept back", "90%"),
    },
    policies.Breaker: {
        "failures": M("share of failures at which it opens; a bare share means this", "50%"),
        "window": M("how long outcomes count", "10s"),
        "volume": M("fewest outcomes in the window before it may open", "20"),
        "open_for": M("pause before probes are let through", "5s"),
        "probes": M("calls let through at a time, and successes that close it", "3"),
        "lease": M("a probe not settled by then counts as failed", "30s"),
        "ramp": M("after closing, how long until all are admitted again", "10s"),
        "ramp_from": M("share admitted at the start of the ramp", "10%"),
    },
    policies.Limit: {
        "max": M("fixed number in flight; a bare number means this", "50"),
        "adaptive": M(
            "a limit that finds itself by timeouts and refusals, instead of max", "{start: 20}"
        ),
        "gradient": M("a limit that finds itself by how latency changes", "{start: 20}"),
        "vegas": M("a limit that finds itself by the queue that it makes", "{start: 20}"),
    },
    policies.Adaptive: {
        "start": M("limit to begin with", "20"),
        "min": M("never below", "1"),
        "max": M("never above", "1000"),
        "decrease": M("what is left of the limit after an overload", "70%"),
        "latency": M(
            "an attempt slower than this counts as overload", "200ms", "only failures count"
        ),
    },
    policies.Gradient: {
        "start": M("limit to begin with", "20"),
        "min": M("never below", "1"),
        "max": M("never above", "1000"),
        "queue": M("how many more may be tried, while answers are as fast as ever", "4"),
        "tolerance": M("how many times the usual latency counts as usual", "1.5x"),
        "smoothing": M("share of each correction that is made in one round trip", "20%"),
        "samples": M("fewest answers of a round trip before it is judged", "50"),
        "baseline": M("how long latency is averaged to tell what is usual", "10min"),
    },
    policies.Vegas: {
        "start": M("limit to begin with", "20"),
        "min": M("never below", "1"),
        "max": M("never above", "1000"),
        "alpha": M("it grows while fewer than alpha x log10(limit) wait", "3"),
        "beta": M("it shrinks while more than beta x log10(limit) wait", "6"),
        "samples": M("fewest answers of a round trip before it is judged", "50"),
        "baseline": M("how long the fastest latency is remembered", "10min"),
    },
    policies.RateLimit: {
        "rate": M("most per second; a bare rate means this", "600/s"),
        "burst": M("how many may come at once after a pause", "60", "a tenth of a second's worth"),
    },
    system.Restart: {
        "backlog": M("requests waiting in a replica at which it drops all and restarts", "5000"),
        "down": M("how long it is away", "30s"),
        "stuck": M("true: back up it finishes nothing until an action resets it", "true"),
    },
    system.Trigger: {
        "service": M("which service it hits", "shop"),
        "client": M("which client it hits, instead of a service", "users"),
        "call": M("which call it hits, instead of a service", "db"),
        "at": M("its start, from the start of the run", "60s", "once the system has settled"),
        "for": M("how long it lasts", "60s", "until an action ends it"),
        "ramp": M("how long it takes to reach full strength", "10s", "at once"),
        "replicas": M("how many of the service's replicas", "1", "all"),
        "of": M("how many replicas the service has; also written `replicas: 1 of 3`", "3"),
        "slowdown": M("own work that starts in it takes so many times as long", "4x"),
        "freeze": M("true: nothing at the service makes progress", "true"),
        "capacity": M("share of workers that is left; work in progress finishes", "50%"),
        "errors": M("share of requests that fail", "20%"),
        "latency": M("added to each request's time at a service, or on a call's wire", "200ms"),
        "load": M("a client's load, as a multiple", "2x"),
        "rate_limit": M("a rate limit that somebody sets by mistake", "100/s"),
        "per_request": M("a call is made so many times instead", "10"),
    },
    system.Action: {
        "ends": M("a trigger to undo, as a rollback does", "slow"),
        "service": M("which service to change", "shop"),
        "client": M("which client to change", "users"),
        "call": M("which call to change", "db"),
        "capacity": M("workers, as a share of what the file says", "200%"),
        "load": M("the load, as a multiple", "0.5x"),
        "rate_limit": M("a new rate limit", "200/s"),
        "attempts": M("attempts of a call", "1"),
        "open": M("true: holds a call's circuit open", "true"),
        "remove": M("true: the code no longer makes this call", "true"),
        "flush": M("true: empties a service's queues", "true"),
        "reset": M("true: frees a stuck service", "true"),
    },
    system.Journey: {
        "client": M("the client whose requests do it", "users"),
    },
    system.Objective: {
        "goodput": M(
            "share of requests answered well within their client's timeout, in 1 s bins", "95%"
        ),
        "within": M("recovery has begun by then, after the trigger's end", "60s"),
    },
    spool.Spool: {
        "lanes": M("kinds of records, by name", "{events: {to: 'file:events.jsonl'}}"),
        "directory": M("where the logs are; relative to the file", "/var/lib/tidegate"),
        "listen": M("the door's address and port", "127.0.0.1:8471"),
        "collector": M("the name of this one among its fleet", "web-17", "the machine's name"),
        "door": M("who may put records in", "{token_file: token}", "as its keys say"),
    },
    spool.Lane: {
        "to": M(
            "where records go: kafka://HOST:PORT/TOPIC, nats://HOST:PORT/SUBJECT, http://,"
            " https://, spool://HOST:PORT/LANE, file:PATH",
            "kafka://127.0.0.1:9092/events",
        ),
        "durable": M(
            "what an answer of accepted means: on disk (`always`), on disk within `interval`, in"
            " the system's cache (`never`)",
            "interval",
        ),
        "interval": M("with `durable: interval`, at most so much is lost in a power cut", "100ms"),
        "order": M(
            "after an outage new records go first (`live`), or all as they came (`kept`)", "kept"
        ),
        "codec": M("how blocks of records are packed on disk (`none`, `zstd`)", "zstd"),
        "key_file": M("a file with the key that encrypts blocks on disk", "spool.key"),
        "token_file": M("a file with the token that an HTTP sink wants", "sink.token"),
        "batch": M("the most that is sent at once", "1MB"),
        "timeout": M("how long the sink may take over a batch", "10s"),
        "share": M("of the disk, kept for this lane whatever the others need", "20%"),
        "bounds": M("how much is kept, and what then", "50GB", "as its keys say"),
        "breaker": M("when live records stay on disk instead", "50%", "as its keys say"),
        "gate": M("when a replay may begin, and what ends it", "60s", "as its keys say"),
        "pace": M("how fast a fleet replays", "normal", "as its keys say"),
        "turns": M("who of a fleet may replay now", "nats://127.0.0.1:4222", "this one by itself"),
        "fleet": M(
            "what one collector cannot see: how many, how much, how far the sink reaches; for"
            " `check` and plans",
            "{collectors: 20, rate: 5000/s}",
        ),
    },
    spool.Door: {
        "token_file": M("a file with the token that clients must bring", "spool.token"),
        "body": M("the largest request, also when unpacked", "16MB"),
        "record": M("the largest record", "1MB"),
        "rate": M("records a second from one client", "1000/s"),
        "inflight": M("the requests that are being received or written, all together", "64MB"),
        "timeout": M("a client that sends nothing for so long is let go", "60s"),
    },
    spool.Bounds: {
        "bytes": M("at most so much on disk", "50GB"),
        "free": M("so much of the disk stays free", "10%"),
        "age": M("older records expire, and are counted", "14d"),
        "records": M("at most so many", "1000000"),
        "full": M(
            "when full: `refuse` new records, or `drop_oldest`, which is counted", "drop_oldest"
        ),
        "low": M("when full, below so much of its bounds it takes records again", "95%"),
    },
    spool.Gate: {
        "hold": M("all must have been well for so long", "60s"),
        "jitter": M("and up to so much longer, by chance", "30s"),
        "stale": M("without news of the sink's health for so long it closes", "15s"),
        "calm": M(
            "opens only while answers take at most so many times what they do in peace", "2x"
        ),
        "errors": M("closes above this share of failed answers", "0.2%"),
        "look": M("how often the sink is asked for its health", "5s"),
        "brokers": M("how many members the sink has", "3", "the most that were ever seen"),
    },
    spool.Pace: {
        "speed": M(
            "how slow the sink may become: 6, 12 or 20 times its latency in peace (`gentle`,"
            " `normal`, `fast`); `at_once` is for simulations of what one has today",
            "fast",
        ),
        "cap": M("at most so many times the live rate", "1x"),
        "start": M("begins at this share of the live rate", "1%"),
        "step": M("grows by this share of the live rate each second", "2%"),
        "cut": M("a cut leaves this share", "85%"),
        "pause": M("at most one cut in so long", "5s"),
        "least": M("what the live rate is taken for at least, in bytes a second", "100kB"),
    },
    spool.Turns: {
        "through": M(
            "where the leases are: nats://, valkey://, postgresql://, or `slots` of time",
            "nats://127.0.0.1:4222",
            "no turns: this one replays by itself",
        ),
        "leases": M("how many replay at a time", "4"),
        "ttl": M("a lease ends so long after its holder was last heard of", "10s"),
        "slice": M("a turn lasts so long, if others wait", "60s"),
        "amount": M("or until so much has been sent", "1GB"),
        "lost": M("without the coordinator: `stop`, or go on at a tenth (`slow`)", "slow"),
        "members": M("with `slots`: how many collectors share the time", "20"),
    },
    spool.Fleet: {
        "collectors": M("how many there are", "20"),
        "rate": M("records a second of all of them, in peace", "5000/s"),
        "record": M("the size of one", "1kB"),
        "capacity": M("what the sink can take, as a multiple of that", "2x"),
        "sick": M("what it takes of that while its replicas are out of step", "50%"),
        "brokers": M("how many share the sink's load", "3"),
        "outage": M("how long the sink was away", "1h"),
        "speed": M("what one collector can send, as a multiple of its own live rate", "12x"),
        "within": M("a replay is promised to be over by then", "8h"),
    },
}
