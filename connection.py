"""A test of the connection to the configured model: one call that costs a few tokens; `POST /api/config/llm/test`.

It goes the way that every other call goes, address guard, key and ledger included, and only waits less long: a person sits in front of it.
That the model fails is what was to be found out, so it is an answer here and no error.
"""

import time
from collections.abc import Callable
from datetime import datetime

import msgspec
from flask import Blueprint, current_app

import database
import llm
from clock import utc_now
from engines import configuration, ledger, prompts
from engines.findings import Usage
from engines.remote import RemoteModel
from errors import ModelFailure
from settings import Settings
from web import inputs

DEADLINE = 20.0  # seconds: a model on a small machine may have to be loaded first
# Models that think before they speak fail when they may not, so this is a limit and no measure: the answer is one word.
MOST_TOKENS = 256

LOCAL = "The embedded analyser needs no connection."
ANSWERED = "The model answers."


class Outcome(msgspec.Struct, frozen=True):
    success: bool
    message: str  # a sentence without the key
    model: str
    milliseconds: int


def probe(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> Outcome:
    """Ask the configured model for one word. Opens the database by itself, for moments."""
    with database.scope():
        chosen = configuration.current(settings)
        used_up = llm.out_of_tokens(chosen, settings, now=clock())
    if chosen.provider == configuration.LOCAL or used_up:
        return Outcome(not used_up, ledger.USED_UP if used_up else LOCAL, chosen.model, 0)
    model = RemoteModel(chosen, configuration.guard(settings), language=settings.language, deadline=DEADLINE)
    begun = time.monotonic()
    try:
        usage, failure = model.complete(prompts.CONNECTION_TEST, most=MOST_TOKENS).usage, None
    except ModelFailure as problem:
        usage, failure = problem.usage or Usage(), problem
    finally:
        model.close()
    milliseconds = round((time.monotonic() - begun) * 1000)
    with database.scope():
        ledger.record(usage, purpose="test", model=model.identity, now=clock())
    return Outcome(failure is None, failure.detail if failure else ANSWERED, chosen.model, milliseconds)


# --------------------------------------------------------------------------------------------------------------------- routes

routes = Blueprint("connection", __name__, url_prefix="/api/config/llm")


@routes.post("/test")
@inputs.without_scope
@inputs.operation()
def run() -> Outcome:
    """Ask the configured model for one word. That it fails is an answer, too."""
    return msgspec.structs.asdict(probe(current_app.settings))
