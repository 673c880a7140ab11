"""Access to the language model: the common interface, the model of the present configuration, the daily token
limit, and a test of the connection; `/api/config/llm` and `/api/usage`.

The embedded model (`rules/embedded.py`) and the remote one (`engines/remote.py`) have one interface,
`Model`. Callers get a model from `model_for` and need not know which one it is. The configuration and the
ledger of costs keep their tables in `engines/`; their routes are here.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import Annotated, Any, BinaryIO, Protocol, TypedDict, TypeVar, cast

import msgspec
from flask import Blueprint

import database
import net
import pictures
from clock import utc_now
from engines import articles, configuration, ledger, prompts, vectors
from engines.configuration import LOCAL, Configuration, guard
from engines.embedding import Embedder
from engines.findings import Answer, Findings, MemoryCandidate, Usage
from engines.lines import Page
from engines.remote import MAX_ANSWER_TOKENS, RemoteModel
from errors import AnswerUnusable, ModelFailure, NotFound
from rules.embedded import LocalModel, fitting_readers, identity
from settings import Settings
from web import inputs, shapes

# The test of the connection.
DEADLINE = 20.0  # seconds; a model on a small machine may have to be loaded first
MOST_TOKENS = 256  # far more than the one word of the answer, because reasoning models think first
NOTHING_TO_TEST = "The embedded analyser needs no connection."
ANSWERED = "The model answers."
TEST_WORD = "lantern"  # on the drawn picture
BLIND = "The model answers, but it does not see pictures: it cannot analyse screenshots."
RESTING = 60.0  # seconds without searches at a provider of vectors that has failed


class Model(Protocol):
    """What every model can do. `identity` names the model in the ledger of costs and in its analyses."""

    identity: str
    takes_tools: bool

    def analyse(
        self, picture: BinaryIO, *, name: str = "", text: str = "", taken: datetime | None = None
    ) -> Findings:
        """What the picture shows. Its file name often names the app. `text` is what was read on it before,
        or "". `taken` is when the screenshot was taken, in local time without a zone. Raises `ModelFailure`.
        """

    def complete(
        self,
        messages: list[dict[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        most: int = MAX_ANSWER_TOKENS,
        remembered: Sequence[str] = (),
    ) -> Answer:
        """The next message of a conversation: a text of at most `most` tokens, or calls of `tools`. Raises
        `ModelFailure`.

        `remembered` are the memories in the system prompt, for a model that does not read prompts.
        """

    def memories_in(self, said: str, answered: str) -> tuple[list[MemoryCandidate], Usage]:
        """Candidate memories from a message and its answer, not yet validated. Raises `ModelFailure`."""

    def write_notes(self, material: articles.Material) -> articles.Notes:
        """Articles about the new material, each with its sources. Raises `ModelFailure`."""

    def close(self) -> None: ...


class Reader(Protocol):
    """What reads text on this machine, and judges it by rules."""

    identity: str

    def prepare(self) -> None:
        """Load the models, unless they are, because pictures are coming."""

    def read(self, picture: BinaryIO, *, patience: float | None = None) -> tuple[Page, str]:
        """The text of the picture with its places, and the engine. Raises `ModelFailure`, `Unavailable`."""

    def judge(self, page: Page, engine: str, *, name: str = "", taken: datetime | None = None) -> Findings:
        """What the embedded rules find in a page that was read. `taken` is local, without a zone."""


class Provider:
    """A provider's embedding model, and the process that compares its vectors. Safe to share by threads."""

    def __init__(self, config: Configuration, settings: Settings):
        named = dataclasses.replace(config, model=settings.embeddings or "")
        self._remote = RemoteModel(named, guard(settings), language=settings.language)
        self._comparing: dict[int, Embedder] = {}  # by the size of the signs
        self._guard = threading.Lock()
        self._resting_until = 0.0
        self.identity = self._remote.identity
        # Two servers may give the same name to different models.
        self.mark = f"{net.origin(config.base_url)} {named.model}"

    def embed(self, texts: Sequence[str], *, deadline: float) -> tuple[list[vectors.Embedded], int, Usage]:
        """The packed vectors of some texts, their dimensions, and the usage. Raises `ModelFailure`."""
        found, usage = self._remote.embed(texts, deadline=deadline)
        return [vectors.quantised(vector) for vector in found], len(found[0]), usage

    @property
    def rests(self) -> bool:
        """Whether a search has failed a moment ago, so that the next ones do not wait for the provider."""
        return time.monotonic() < self._resting_until

    def rest(self) -> None:
        """Let no search wait for the provider for `RESTING` seconds."""
        self._resting_until = time.monotonic() + RESTING

    def comparer(self, dimensions: int) -> Embedder:
        """The process that compares vectors with so many dimensions."""
        size = vectors.signs_size(dimensions)
        with self._guard:
            if size not in self._comparing:
                self._comparing[size] = Embedder(signs=size)
            return self._comparing[size]

    def close(self) -> None:
        """End its connections and its processes."""
        self._remote.close()
        with self._guard:
            for comparer in self._comparing.values():
                comparer.close()


class Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class LoadedModels:
    """The models in use, each made at its first use and shared by all threads."""

    def __init__(self) -> None:
        self._made: dict[Hashable, Closable] = {}
        self._guard = threading.Lock()

    def model_for(self, config: Configuration, settings: Settings) -> Model:
        """The model of this configuration."""
        if config.provider == LOCAL:
            return self.local(settings)
        return self._one(
            (RemoteModel, config, settings),
            lambda: RemoteModel(config, guard(settings), language=settings.language),
        )

    def local(self, settings: Settings) -> LocalModel:
        """The embedded model, with the OCR processes for reading and analysing."""
        sense = None if settings.meaning == "off" else lambda text: self.embedder().quick(text)
        return self._one(
            (LocalModel, settings),
            lambda: LocalModel(
                ocr_model=settings.ocr_model,
                language=settings.language,
                sense=sense,
                readers=settings.ocr_processes or fitting_readers(),
            ),
        )

    def embedder(self) -> Embedder:
        """What makes vectors of texts."""
        return self._one(Embedder, Embedder)

    def provider(self, config: Configuration, settings: Settings) -> Provider:
        """The embedding model of this configuration."""
        return self._one((Provider, config, settings), lambda: Provider(config, settings))

    def clear(self) -> None:
        """Close every model."""
        with self._guard:
            for made in self._made.values():
                made.close()
            self._made.clear()

    def _one(self, key: Hashable, make: Callable[[], C]) -> C:
        with self._guard:
            if key not in self._made:
                self._made[key] = make()
            return cast(C, self._made[key])


def model_for(config: Configuration, settings: Settings) -> Model:
    """The model of a configuration. The open store owns it and closes it."""
    return database.store().cache(LoadedModels).model_for(config, settings)


def reader(settings: Settings) -> Reader:
    """What reads text on this machine, whichever model is configured. The open store owns and closes it."""
    return database.store().cache(LoadedModels).local(settings)


def embedder() -> Embedder:
    """What makes vectors of texts on this machine. The open store owns and closes it."""
    return database.store().cache(LoadedModels).embedder()


def provider(config: Configuration, settings: Settings) -> Provider | None:
    """The embedding model of this configuration; None when none is set, or when nothing leaves this machine.
    The open store owns it and closes it. Raises `BadInput` for an address that cannot be called.
    """
    if not settings.embeddings or config.provider == LOCAL:
        return None
    return database.store().cache(LoadedModels).provider(config, settings)


def judged_by(reader: str) -> str:
    """The identity of the embedded model with this reader, which has the version of its rules."""
    return identity(reader)


def reads_first(config: Configuration, settings: Settings) -> bool:
    """Whether a picture is read on this machine before the model of this configuration gets it."""
    return settings.read_locally and config.provider != LOCAL


class Outcome(TypedDict):
    """What a test of the connection found."""

    success: bool
    message: str  # a sentence without the key
    model: str
    milliseconds: int


def probe(settings: Settings, *, clock: Callable[[], datetime] = utc_now) -> Outcome:
    """Ask the configured model for the word on a drawn picture, and record the cost. A model that cannot see
    pictures is asked for a word without one, to tell whether it answers at all. Opens its own short database
    scopes.
    """
    with database.scope():
        config = configuration.current(settings)
        used_up = ledger.out_of_tokens(config, settings, now=clock())
    if config.provider == configuration.LOCAL or used_up:
        sentence = ledger.USED_UP if used_up else NOTHING_TO_TEST
        return Outcome(success=not used_up, message=sentence, model=config.model, milliseconds=0)
    model = RemoteModel(config, configuration.guard(settings), language=settings.language, deadline=DEADLINE)
    begun = time.monotonic()
    try:
        sentence, sees, used = _tried(model)
    finally:
        model.close()
    milliseconds = round((time.monotonic() - begun) * 1000)
    with database.scope():
        for usage in used:
            ledger.record(usage, purpose="test", model=model.identity, now=clock())
    return Outcome(success=sees, message=sentence, model=config.model, milliseconds=milliseconds)


def _tried(model: RemoteModel) -> tuple[str, bool, list[Usage]]:
    """What a test of a model has found, whether it answers and sees, and what its calls have used."""
    try:
        answer = model.complete(prompts.connection_test(pictures.drawn(TEST_WORD)), most=MOST_TOKENS)
        if TEST_WORD in answer.text.casefold():
            return ANSWERED, True, [answer.usage]
        return BLIND, False, [answer.usage]
    except ModelFailure as problem:
        usage = problem.usage or Usage()
        if usage.calls or not isinstance(problem, AnswerUnusable):
            return problem.detail, False, [usage]
        refused = problem.detail  # how servers refuse a picture, and other things
    try:
        return f"{BLIND} {refused}", False, [model.complete(prompts.BLIND_TEST, most=MOST_TOKENS).usage]
    except ModelFailure as problem:
        return refused, False, [problem.usage or Usage()]


def shown(config: Configuration) -> shapes.ConfigurationFields:
    """The configuration without its key; `api_key_set` reports whether there is one."""
    return shapes.of(config, shapes.ConfigurationFields, api_key_set=bool(config.api_key))


# ----------------------------------------------------------------------------------------------------- routes

routes = Blueprint("llm", __name__, url_prefix="/api/config/llm")


class ModelChange(msgspec.Struct):
    provider: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    base_url: (
        Annotated[str, msgspec.Meta(max_length=net.MAX_URL_LENGTH, description=net.ABOUT_HOST)] | None
    ) = None
    api_key: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None
    model: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None


class PresetKey(msgspec.Struct):
    api_key: Annotated[str, msgspec.Meta(max_length=4_096)] | None = None


@routes.get("")
@inputs.operation()
def show() -> shapes.ConfigurationFields:
    """Show which model answers. The key is never shown; `api_key_set` tells whether there is one. A change
    takes effect within a minute in every worker.
    """
    return shown(configuration.latest(inputs.settings()))


@routes.put("")
@inputs.operation()
def update(body: ModelChange) -> shapes.ConfigurationFields:
    """Configure the model. Omitted fields stay; an empty text returns a field to the environment's value.

    Provider `local` is the embedded model. A preset's name as provider, without an address, sets the preset's
    address and model. A key is never sent to another host: when the address's origin changes and no new key
    is given, the stored key is deleted.
    """
    configuration.change(inputs.settings(), **inputs.given(body))
    return shown(configuration.current(inputs.settings()))


@routes.get("/presets")
@inputs.operation()
def list_presets() -> shapes.PresetList:
    """List the presets by their names. A preset has an address, a model and the size of its context, and no
    key.
    """
    return {
        "presets": {
            name: shapes.of(preset, shapes.PresetFields) for name, preset in configuration.PRESETS.items()
        }
    }


@routes.post("/presets/<name>/apply")
@inputs.operation(NotFound)
def apply(name: str, body: PresetKey) -> shapes.ConfigurationFields:
    """Configure the model from a preset. It sets provider, address and model, and the key if the body has
    one.
    """
    configuration.apply_preset(inputs.settings(), name, body.api_key)
    return shown(configuration.current(inputs.settings()))


connection_routes = Blueprint("connection", __name__, url_prefix="/api/config/llm")


@connection_routes.post("/test")
@inputs.without_scope
@inputs.operation()
def run() -> Outcome:
    """Ask the configured model for the word on a small picture. A failure of the model, also one that sees no
    pictures, is reported with status 200.
    """
    return probe(inputs.settings())


usage_routes = Blueprint("spend", __name__, url_prefix="/api/usage")


class UsageQuery(msgspec.Struct):
    days: Annotated[int, msgspec.Meta(ge=1, le=3_660)] = 30


@usage_routes.get("", endpoint="show")
@inputs.operation()
def show_usage(query: UsageQuery) -> shapes.UsageReport:
    """Show the calls and tokens of the last days, today included. Days are UTC, and those without calls are
    left out. The embedded model has no tokens.
    """
    now, limit = utc_now(), inputs.settings().daily_token_limit
    rows = ledger.usage(query.days, now=now)
    days = [
        shapes.of(row, shapes.UsageRow, total_tokens=row.prompt_tokens + row.completion_tokens)
        for row in rows
    ]
    return {"daily_token_limit": limit, "tokens_today": ledger.tokens_today(now=now), "days": days}
