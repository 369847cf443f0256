"""A rate for each client: exact while it is remembered, too mild when it had to be forgotten."""

import pytest

from tidegate.core.client_rates import ClientRates
from tidegate.core.token_bucket import TokenBucket
from tidegate.errors import SettingsError
from tidegate.settings.admission import ClientRate
from tidegate.settings.policies import RateLimit
from tidegate.units import MILLISECOND, SECOND


def test_each_client_has_its_own_bucket() -> None:
    policy = ClientRates(ClientRate(rate=10, burst=2))
    assert [policy.try_acquire(0, "a") for _ in range(3)] == [True, True, False]
    assert policy.try_acquire(0, "b")
    assert policy.retry_after(0, "a") == 100 * MILLISECOND
    assert not policy.try_acquire(100 * MILLISECOND - 1, "a")
    assert policy.try_acquire(100 * MILLISECOND, "a")
    assert policy.snapshot(0) == (2, 16_000, 2, 0)


def test_who_is_not_remembered_may_come_now() -> None:
    assert ClientRates(ClientRate(rate=1)).retry_after(5, "nobody") == 0


@pytest.mark.parametrize("rate", [0.3, 7, 95, 1_234.5])
def test_it_decides_as_a_bucket_of_one_s_own(rate: float) -> None:
    policy, bucket = ClientRates(ClientRate(rate=rate)), TokenBucket(RateLimit(rate=rate))
    now = 0
    for step in range(300):
        now += (step * 7919) % 13 * SECOND // int(5 * rate + 1)
        assert policy.retry_after(now, "a") == bucket.retry_after(now)
        assert policy.try_acquire(now, "a") == bucket.try_acquire(now)


def test_a_million_clients_take_no_more_than_the_table() -> None:
    policy = ClientRates(ClientRate(rate=1, clients=100))
    for client in range(1_000_000):
        policy.try_acquire(client, client)
    clients, most, refused, forgotten = policy.snapshot(0)
    assert (clients, most, refused) == (100, 100, 0)
    assert forgotten == 1_000_000 - 100
    assert policy._check()


def test_who_is_through_with_his_burst_is_forgotten_without_loss() -> None:
    policy = ClientRates(ClientRate(rate=1, clients=100))
    for client in range(100):
        policy.try_acquire(0, client)
    for client in range(100, 150):
        policy.try_acquire(2 * SECOND, client)
    assert policy.snapshot(0) == (50, 100, 0, 0)


def test_the_one_who_asked_longest_ago_is_forgotten_first() -> None:
    policy = ClientRates(ClientRate(rate=1, burst=2, clients=2))
    for client in "aab":
        assert policy.try_acquire(0, client)
    assert not policy.try_acquire(0, "a")  # a no moves nothing, so he is still the first
    assert policy.try_acquire(0, "c")
    assert policy.try_acquire(0, "a")  # forgotten, and so he has a full burst again


def test_rules_are_those_of_a_rate_limit() -> None:
    with pytest.raises(SettingsError, match="a rate above zero"):
        ClientRate(rate=0)
    with pytest.raises(SettingsError, match="clients"):
        ClientRate(rate=1, clients=0)
