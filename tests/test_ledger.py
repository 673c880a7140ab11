"""The spend ledger: every answered call counts, and a day's limit holds without losing anything."""

import dataclasses
from datetime import datetime, timedelta

import pytest

import database
import models
from clock import utc_now
from engines import configuration, ledger
from engines.findings import Usage
from settings import Settings
from tests.support.client import detail
from tests.support.drawing import draw


@pytest.fixture
def limited(remote):
    return dataclasses.replace(remote, daily_token_limit=1_500)


def test_usage_is_shown_by_day_purpose_and_model(client, remote, fake_llm, work_queue):
    client.upload(draw("a"))
    client.upload(draw("b"))
    work_queue(remote)
    shown = client.get("/api/usage").json

    assert shown["daily_token_limit"] == 0
    assert shown["tokens_today"] == 2_200
    assert shown["days"] == [
        {
            "day": utc_now().date().isoformat(),
            "purpose": "analysis",
            "model": "custom/scripted",
            "calls": 2,
            "prompt_tokens": 2_000,
            "completion_tokens": 200,
            "total_tokens": 2_200,
        }
    ]
    assert detail(client.get("/api/usage?days=0"), 400) == "days: must be between 1 and 3660"


def test_the_embedded_model_costs_nothing(client):
    with database.scope():
        ledger.record(Usage(), purpose="analysis", model="local/small", now=utc_now())

    assert client.get("/api/usage").json["days"] == []


def test_when_the_days_tokens_are_used_up_photos_wait_and_go_on_the_next_day(
    client, limited, fake_llm, clock, work_queue
):
    for name in "abc":
        client.upload(draw(name))
    turns = work_queue(limited, clock=clock)

    assert turns == len(fake_llm.requests) == 2  # the call that crosses the limit is finished
    stats = client.get("/api/stats").json
    assert (stats["done"], stats["pending"], stats["errors"]) == (2, 1, 0)
    clock.move(days=1)
    assert work_queue(limited, clock=clock)
    assert client.get("/api/stats").json["done"] == 3


def test_an_unfinished_day_of_another_purpose_counts_as_well(client, limited, clock):
    with database.scope():
        ledger.record(Usage(1, 1_000, 500), purpose="chat", model="any", now=clock())

        remote = configuration.current(limited)
        assert ledger.out_of_tokens(remote, limited, now=clock())
        clock.move(days=1)
        assert not ledger.out_of_tokens(remote, limited, now=clock())


@pytest.fixture
def rows(tmp_path):
    database.open_store(Settings(data_dir=tmp_path / "data", encryption=False))
    with database.scope():
        yield models.SpendLedger
    database.close_connections()


def test_usage_is_added_up_by_day_purpose_and_model(rows):
    day = datetime(2026, 11, 21, 23, 59)
    ledger.record(Usage(1, 1000, 100), purpose="analysis", model="custom/eyes-1", now=day)
    ledger.record(Usage(2, 30, 4), purpose="analysis", model="custom/eyes-1", now=day)
    ledger.record(Usage(1, 5, 6), purpose="chat", model="custom/eyes-1", now=day)
    ledger.record(Usage(1, 7, 8), purpose="analysis", model="custom/eyes-1", now=day + timedelta(minutes=1))
    ledger.record(Usage(), purpose="analysis", model="local/small", now=day)
    found = rows.select().order_by(rows.day, rows.purpose).tuples()
    assert list(found) == [
        ("2026-11-21", "analysis", "custom/eyes-1", 3, 1030, 104),
        ("2026-11-21", "chat", "custom/eyes-1", 1, 5, 6),
        ("2026-11-22", "analysis", "custom/eyes-1", 1, 7, 8),
    ]
