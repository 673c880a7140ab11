"""The circuit breaker's transitions, on plain values."""

from datetime import datetime, timedelta

import msgspec
import pytest

from engines.circuit import FAILURES, LONGEST_PAUSE, Circuit
from engines.findings import Findings
from errors import AnswerUnusable, ProviderDown, ProviderRefused, Unreadable

NOW = datetime(2026, 3, 1, 12)
SECOND = timedelta(seconds=1)
DOWN = ProviderDown("No connection.")
REFUSED = ProviderRefused("Wrong key.")
CLOSED = Circuit(fingerprint="a")


def after(circuit, *outcomes, probe=False, now=NOW):
    for outcome in outcomes:
        circuit = circuit.after(outcome, probe=probe, now=now)
    return circuit


OPEN = after(CLOSED, DOWN, DOWN, DOWN)
REFUSING = after(CLOSED, REFUSED)


def test_three_failures_in_a_row_open_it_for_half_a_minute():
    assert not after(CLOSED, *[DOWN] * (FAILURES - 1)).open
    opened = after(CLOSED, DOWN, DOWN, DOWN)
    assert opened == Circuit("a", failures=3, open=True, probe_at=NOW + 30 * SECOND, pause=30.0)


@pytest.mark.parametrize("answer", [Findings(), AnswerUnusable("Nonsense.")], ids=["findings", "nonsense"])
def test_an_answer_closes_it_and_begins_the_count_anew(answer):
    assert after(CLOSED, DOWN, DOWN, answer, DOWN, DOWN) == Circuit("a", failures=2)
    assert after(OPEN, answer, probe=True) == CLOSED
    assert after(REFUSING, answer, probe=True) == CLOSED


def test_each_probe_that_fails_doubles_the_pause_up_to_ten_minutes():
    circuit, pauses = OPEN, []
    for _ in range(6):
        circuit = after(circuit, DOWN, probe=True)
        pauses.append(circuit.pause)
        assert circuit.probe_at == NOW + timedelta(seconds=circuit.pause)
    assert pauses == [60, 120, 240, 480, 600, 600]


def test_a_failure_that_was_under_way_when_it_opened_does_not_lengthen_the_pause():
    later = after(OPEN, DOWN, now=NOW + SECOND)
    assert (later.pause, later.failures, later.probe_at) == (30.0, 4, NOW + 31 * SECOND)


def test_a_provider_that_asks_for_more_time_gets_it():
    patient = ProviderDown("Too many requests.", retry_after=900)
    assert after(CLOSED, DOWN, DOWN, patient).probe_at == NOW + 900 * SECOND
    assert after(OPEN, patient, probe=True).probe_at == NOW + 900 * SECOND
    assert after(CLOSED, DOWN, DOWN, ProviderDown("Busy.", retry_after=1)).probe_at == NOW + 30 * SECOND
    assert timedelta(seconds=900) > LONGEST_PAUSE


def test_a_refusal_opens_it_without_a_time_for_a_probe():
    assert after(CLOSED, REFUSED) == Circuit("a", failures=1, open=True)
    assert after(OPEN, REFUSED) == Circuit("a", failures=4, open=True)
    assert not REFUSING.lets_through(NOW + timedelta(days=1000))


def test_a_failure_that_was_under_way_when_it_was_refused_changes_no_refusal():
    assert after(REFUSING, DOWN, DOWN, DOWN) == Circuit("a", failures=4, open=True)


def test_a_refusal_ends_with_another_configuration_or_allows_one_probe_when_a_person_asks():
    assert REFUSING.about("a") is REFUSING
    assert REFUSING.about("b") == OPEN.about("b") == Circuit(fingerprint="b")

    allowed = REFUSING.with_probe_allowed(NOW)
    assert allowed.lets_through(NOW)
    assert not allowed.probed(NOW + 300 * SECOND).lets_through(NOW)
    failed = after(allowed, DOWN, probe=True)
    assert failed == Circuit("a", failures=2, open=True, probe_at=NOW + 30 * SECOND, pause=30.0)
    assert OPEN.with_probe_allowed(NOW) is OPEN
    assert CLOSED.with_probe_allowed(NOW) is CLOSED


def test_an_open_one_lets_one_probe_through_when_its_time_has_come():
    assert CLOSED.lets_through(NOW)
    assert not OPEN.lets_through(NOW + 29 * SECOND)
    assert OPEN.lets_through(NOW + 30 * SECOND)
    assert not OPEN.probed(NOW + 330 * SECOND).lets_through(NOW + 329 * SECOND)
    assert CLOSED.probed(NOW) is CLOSED


@pytest.mark.parametrize("outcome", [None, Unreadable("Damaged.")], ids=["given back", "no picture"])
def test_a_probe_that_says_nothing_about_the_provider_leaves_its_place(outcome):
    under_way = OPEN.probed(NOW + 330 * SECOND)
    assert after(under_way, outcome, probe=True, now=NOW + 31 * SECOND).lets_through(NOW + 31 * SECOND)
    assert after(under_way, outcome) == under_way
    assert after(CLOSED, outcome, probe=True) == CLOSED


def test_a_probe_that_a_clock_ahead_has_put_off_may_go_now():
    late = msgspec.structs.replace(OPEN, probe_at=NOW + timedelta(days=365))
    limit = NOW + timedelta(days=1)
    assert late.without_waiting_past(limit, now=NOW).lets_through(NOW)
    assert OPEN.without_waiting_past(limit, now=NOW) is OPEN
    assert REFUSING.without_waiting_past(limit, now=NOW) is REFUSING


def test_it_is_kept_as_json():
    for circuit in (CLOSED, OPEN, REFUSING):
        assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(circuit)), Circuit) == circuit
    assert msgspec.convert({}, Circuit) == Circuit()
