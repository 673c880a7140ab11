"""The door to the model: which one there is, what every model can do, and whether tokens are left for it.

Two models have one interface, `Model`: the embedded one (`engines/embedded.py`) and the remote one (`engines/remote.py`). Whoever wants an answer calls
`model_for` and never asks which one it got.
"""

import threading
from collections.abc import Sequence
from datetime import datetime
from typing import BinaryIO, Protocol

import database
from engines import articles, ledger
from engines.configuration import LOCAL, Configuration, guard
from engines.embedded import LocalModel
from engines.findings import Answer, Findings, MemoryCandidate, Usage
from engines.remote import MAX_ANSWER_TOKENS, RemoteModel
from errors import Unavailable
from settings import Settings


class Model(Protocol):
    """What every model can do. `identity` names it in the spend ledger and tells analyses of different models apart."""

    identity: str
    takes_tools: bool

    def analyse(self, picture: BinaryIO, *, name: str = "") -> Findings:
        """What the picture shows; `name` is the file's, which often tells the app. Raises `ModelFailure`."""

    def complete(
        self, messages: list[dict], *, tools: list[dict] | None = None, most: int = MAX_ANSWER_TOKENS, remembered: Sequence[str] = ()
    ) -> Answer:
        """The next message of a conversation: a text of at most `most` tokens, or calls of `tools`. Raises `ModelFailure`.

        `remembered` are the memories that the system prompt shows, for a model that does not read it.
        """

    def memories_in(self, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage]:
        """What may be worth remembering of what a person said; nobody has checked it yet. Raises `ModelFailure`."""

    def write_notes(self, material: articles.Material) -> articles.Notes:
        """Articles about what is new to the person, each citing what it rests on. Raises `ModelFailure`."""

    def close(self) -> None: ...


class LoadedModels:
    """The models in use, one for each configuration: all threads share its OCR process or its connections."""

    def __init__(self) -> None:
        self._models: dict[tuple[Configuration, Settings], Model] = {}
        self._guard = threading.Lock()

    def model_for(self, chosen: Configuration, settings: Settings) -> Model:
        """The model of this configuration, made if it is not in use yet."""
        with self._guard:
            if (chosen, settings) not in self._models:
                self._models[chosen, settings] = _make_model(chosen, settings)
            return self._models[chosen, settings]

    def clear(self) -> None:
        """Close every model."""
        with self._guard:
            for model in self._models.values():
                model.close()
            self._models.clear()


def model_for(chosen: Configuration, settings: Settings) -> Model:
    """The model of a configuration; it is closed with the open store."""
    return database.store().cache(LoadedModels).model_for(chosen, settings)


def out_of_tokens(chosen: Configuration, settings: Settings, *, now: datetime) -> bool:
    """Whether the day's tokens are spent, and the model of this configuration would take more."""
    return chosen.provider != LOCAL and ledger.used_up(settings, now=now)


def require_tokens(chosen: Configuration, settings: Settings, *, now: datetime) -> None:
    """Raises `Unavailable` until the next day when `out_of_tokens`."""
    if out_of_tokens(chosen, settings, now=now):
        raise Unavailable(ledger.USED_UP, retry_after=ledger.resets_in(now=now))


def _make_model(chosen: Configuration, settings: Settings) -> Model:
    if chosen.provider == LOCAL:
        return LocalModel(ocr_model=settings.ocr_model, language=settings.language)
    return RemoteModel(chosen, guard(settings), language=settings.language)
