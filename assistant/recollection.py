"""Memories from finished turns: a background thread reads each turn and saves what the person says about
themselves, and only that.
"""

import logging
from collections.abc import Callable
from datetime import datetime

import blinker

import database
import gate
import llm
import loops
import memory
import models
from assistant import turns
from assistant.transcript import held_back
from clock import utc_now
from database import db
from engines import configuration, ledger
from engines.findings import MemoryCandidate, Usage
from errors import ModelFailure, ProviderDown, ProviderRefused, Unavailable
from locks import named_lock
from rules import statements
from settings import Settings

log = logging.getLogger(__name__)

READ_AGAIN = 60.0  # seconds until a turn is read again after its model failed
IDLE_WAIT = 10.0  # seconds between looks for turns that other processes have finished

# Sent when a turn has been stored: it may hold memories.
finished = blinker.Signal()


def read_for_memories(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> bool:
    """Read the oldest finished turn for memories and save them. Returns False when no turn is waiting or
    none can be read now.

    The background thread repeats this. A turn that the model cannot read is skipped for good; when the model
    cannot be reached, the turn waits. Whatever the model proposes, only what the person wrote is saved. A
    turn in which something sensitive was said or read is sent to no remote model, and skipped.
    """
    with database.scope():
        config = configuration.current(settings)
        waiting = turns.next_to_read()
        if waiting is None or ledger.out_of_tokens(config, settings, now=clock()):
            return False
        model = llm.model_for(config, settings)
        models.prove_writable()
        question, answer, recalled = waiting
        content = question.content or ""
        held = gate.is_before(config, settings) and (
            gate.withholds_text(content, answer) or bool(held_back(turns.turn_of(question)))
        )
    found, usage, later = ([], Usage(), False) if held else _memories_in(model, content, answer)
    with database.scope(), db.atomic():
        ledger.record(usage, purpose="memory", model=model.identity, now=clock())
        if later or not turns.mark_read(question.id):  # it was deleted meanwhile
            return not later
        device_id = question.conversation.device_id
        for candidate in found:
            if statements.rests_on(candidate.content, [content]):
                memory.remember(
                    candidate,
                    source_type="chat",
                    device_id=device_id,
                    now=clock(),
                    said=[content],
                    recalled=recalled,
                )
    return True


def reader(settings: Settings) -> loops.Loop:
    """The background thread that reads finished turns for memories."""

    def step() -> float:
        try:
            # One process at a time: two would both pay for the same turn.
            with named_lock(
                database.store().folder / "turns", "reading", 0, busy="Another process is reading turns."
            ):
                if read_for_memories(settings):
                    return 0.0
            with database.scope():
                return IDLE_WAIT if turns.next_to_read() is None else READ_AGAIN
        except Unavailable:
            return IDLE_WAIT

    return loops.Loop("memories", step, wake_on=finished)


def _memories_in(model: llm.Model, question: str, answer: str) -> tuple[list[MemoryCandidate], Usage, bool]:
    """The memories that a model finds, their cost, and whether to try again later."""
    try:
        return *model.memories_in(question, answer), False
    except ModelFailure as problem:
        later = isinstance(problem, ProviderDown | ProviderRefused)
        if not later:
            log.warning("a turn could not be read for memories: %s", problem)
        return [], problem.usage or Usage(), later
