"""The measurements: a function for each group of figures, in the order in which they run.

The server always runs in its own process and is called over HTTP on open connections. During a measurement
the analysis queue is empty, or the configured model never answers, so that the figures contain only the work
that they name. The file is long because it is one list of measurements that share their tools.
"""

import contextlib
import dataclasses
import io
import itertools
import random
import re
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import msgspec
from werkzeug.test import create_environ, run_wsgi_app

import database
import llm
import models
import pictures
import search
import uploads
from analysis.pool import Worker
from app import create_app
from assistant import chat, openings
from benchmarks import floors, material, seed, tables
from benchmarks.figures import Figure
from benchmarks.found import finding
from benchmarks.joined import joining
from benchmarks.service import API_KEY, MemoryWatch, PauseWatch, Service, upload_form
from benchmarks.timing import in_turns, p50, p95, side_by_side
from clock import iso, utc_now
from engines import configuration, reading
from models import Analysis, Photo, Vocabulary
from rules.embedded import LocalModel
from settings import Settings
from tests.support.fake_llm import FakeLLM, Request
from upkeep import cleanup

MS = 1_000
MB = 1_048_576
BURST = 170  # screenshots of a holiday
CLIENTS = 3  # uploads that a phone has under way at once
BROWSER = 6  # connections of a browser
PAGE = 20
SAMPLE = 0.05  # seconds between two samples of the memory
# Seconds after which the service has returned the memory of a burst: see TIDY_EVERY in gunicorn.conf.py.
QUIET = 65.0
TRIES = 3  # of each query
# Seven, so that they meet each of the six kinds of queries in turn.
OPERATORS = ("app:Bank", "is:unread", "is:kept", "has:link", "category:chat", "after:2026-01", "-the")
OLDEST = 1_000  # photos that one clean-up deletes
MEMORIES = 1_000  # about a person who has chatted for years


def analysing(folders: seed.Folders) -> Iterator[Figure]:
    """The analysis of one screenshot in a large library, with a model that answers at once, so that only the
    service's own time remains.
    """
    writer = material.Writer()
    screenshots = folders.screenshots
    with FakeLLM(default=lambda _request: _answer(writer)) as model:
        settings = _with_model(folders.large, model.url)
        _store(settings, screenshots)
        works = iter(Worker(settings).work, False)
        again = itertools.cycle(screenshots)
        actions = {"work": lambda: next(works), "floor": lambda: pictures.for_model(io.BytesIO(next(again)))}
        seconds = in_turns(actions, len(screenshots) - 1, warm_up=1)
        with database.scope():
            if Analysis.select().where(Analysis.status != "done").exists():
                raise RuntimeError("an analysis failed")
        database.close_store()
    yield Figure(
        what="analysis of a screenshot, over the model's time, p50",
        measured=p50(seconds["work"]) * MS, unit="ms",
        floor=p50(seconds["floor"]) * MS, floor_is="decode and re-encode", at_most=150,
    )  # fmt: skip


def chatting(folders: seed.Folders) -> Iterator[Figure]:
    """A turn in a long conversation of a person with many memories, with a model that answers at once, so
    that only the service's own time remains. Turns run in this process, and an empty request stands for
    their HTTP: over HTTP, the rate limit would be met.
    """
    writer = material.Writer()
    with (
        FakeLLM(default=lambda _request: "I see.") as model,
        Service(folders.empty("empty")) as service,
    ):
        settings = _with_model(folders.large, model.url)
        database.open_store(settings)
        with database.scope():
            for number in range(MEMORIES):
                content = f"{number} {writer.findings().summary}"[:200]
                models.Memory.create(
                    content=content, memory_type="long_term", source_type="chat", created_at=utc_now()
                )
            chosen = configuration.current(settings)
        direct = llm.model_for(chosen, settings)

        def turn(*queries: str) -> None:
            for query in queries:
                arguments = msgspec.json.encode({"query": query}).decode()
                function = {"name": "search_knowledge_base", "arguments": arguments}
                model.answer(None, tool_calls=[{"id": query, "type": "function", "function": function}])
            chat.send(settings, openings.UserMessage(f"What about {writer.findings().app_name}?", "cafe"))

        actions = {
            "health": _asking(service, lambda: "/api/health"),
            "turn": turn,
            "tool": lambda: turn(writer.findings().app_name),
            "model": lambda: direct.complete(
                [message for request in model.requests[-1:] for message in request.body["messages"]]
            ),
        }
        seconds = in_turns(actions, 10 * folders.rounds, warm_up=3)
        database.close_store()
    call, health = p50(seconds["model"]), p50(seconds["health"])
    floor = {"floor": health * MS, "floor_is": "health", "unit": "ms"}
    yield Figure(
        what="chat turn, over the model's time, p50",
        measured=(p50(seconds["turn"]) - call + health) * MS,
        ratio_at_most=15,
        **floor,
    )
    yield Figure(
        what="chat turn with a search, over the model's time, p50",
        measured=(p50(seconds["tool"]) - 2 * call + health) * MS,
        **floor,
    )


def local_reading(folders: seed.Folders) -> Iterator[Figure]:
    """Embedded OCR and rules, one picture at a time on one thread, with the models already loaded."""
    model = LocalModel(ocr_model="both", language="en")
    again = itertools.cycle(folders.screenshots)
    with contextlib.closing(model):
        seconds = in_turns(
            {"read": lambda: model.analyse(io.BytesIO(next(again)))}, 1 + folders.rounds, warm_up=1
        )["read"]
    yield Figure(
        what="embedded analyser, a phone screenshot, p50", measured=p50(seconds), unit="s", at_most=0.8
    )


def starting(folders: seed.Folders) -> Iterator[Figure]:
    """The time from the command to the first answer, and the memory of all processes before and after some
    hundred requests.
    """
    asked = queries(folders.large, folders.rounds)
    newest = f"/api/photos/{folders.size}"
    paths = [
        "/api/stats",
        f"/api/photos?page_size={PAGE}",
        newest,
        f"{newest}/thumbnail",
        *map(search_path, asked),
    ]
    started, bare, fresh, used = [], [], [], []
    for _ in range(-(-folders.rounds // 2)):
        bare.append(floors.bare_process())
        with Service(folders.large) as service:
            started.append(service.started_in)
            fresh.append(service.memory())
            side_by_side(BROWSER, lambda service=service: service.client().get, paths * 2)
            used.append(service.memory())
    packages = {
        "floor": p50([memory for _, memory in bare]) / MB,
        "floor_is": "its packages alone",
        "unit": "MB",
    }
    yield Figure(
        what="start to first answer, p50", measured=p50(started), unit="s",
        floor=p50([seconds for seconds, _ in bare]), floor_is="its packages alone", at_most=1,
    )  # fmt: skip
    yield Figure(what="memory, just started", measured=p50(fresh) / MB, at_most=95, **packages)
    yield Figure(what=f"memory, after requests by {BROWSER} clients", measured=p50(used) / MB, **packages)
    if folders.rounds > 1:  # left out of a quick run
        with Service(folders.large) as service:
            side_by_side(BROWSER, lambda: service.client().get, paths * 2)
            time.sleep(QUIET)
            yield Figure(
                what="memory, a quiet minute later", measured=service.memory() / MB, at_most=95, **packages
            )


def listing(folders: seed.Folders) -> Iterator[Figure]:
    """List, detail and statistics, with many photos and with few, encrypted and not."""
    small = min(seed.REFERENCE, folders.size)
    week = urlencode(
        {"since": iso(folders.now - timedelta(days=14)), "until": iso(folders.now - timedelta(days=7))}
    )
    with contextlib.ExitStack() as services:
        many, plain = (services.enter_context(Service(folder)) for folder in (folders.large, folders.plain))
        few = many if folders.small is folders.large else services.enter_context(Service(folders.small))
        targets = {"many": (many, folders.size), "few": (few, small), "plain": (plain, folders.size)}
        actions = {}
        for name, (service, size) in targets.items():
            choice = random.Random(material.SEED)
            # The first request after another process has run is slower, whatever it asks for.
            for turn in ("wake", "health"):
                actions[f"{turn} {name}"] = _asking(service, lambda: "/api/health")
            actions[f"list {name}"] = _asking(service, lambda: f"/api/photos?page_size={PAGE}")
            actions[f"last {name}"] = _asking(
                service, lambda size=size: f"/api/photos?page_size={PAGE}&page={-(-size // PAGE)}"
            )
            actions[f"middle {name}"] = _asking(
                service, lambda size=size: f"/api/photos?page_size={PAGE}&page={-(-size // PAGE // 2)}"
            )
            actions[f"detail {name}"] = _asking(
                service, lambda size=size, choice=choice: f"/api/photos/{choice.randint(1, size)}"
            )
            actions[f"filtered {name}"] = _asking(
                service, lambda: f"/api/photos?page_size={PAGE}&status=done&device_id=phone_1"
            )
            actions[f"kind {name}"] = _asking(
                service, lambda: f"/api/photos?page_size={PAGE}&category=chat&intent=note"
            )
            actions[f"stacks {name}"] = _asking(service, lambda: f"/api/photos?page_size={PAGE}&stacks=true")
            actions[f"kept {name}"] = _asking(
                service, lambda: f"/api/photos?page_size={PAGE}&stacks=true&kept=true"
            )
            actions[f"week {name}"] = _asking(service, lambda: f"/api/photos?page_size={PAGE}&{week}")
            actions[f"analyses {name}"] = _asking(
                service, lambda: f"/api/analysis?page_size={PAGE}&status=done&intent=note"
            )
            actions[f"stats {name}"] = _asking(service, lambda: "/api/stats")
        seconds = {
            name: p50(each) * MS for name, each in in_turns(actions, 30 * folders.rounds, warm_up=10).items()
        }
    call, choice = _called(folders.large), random.Random(material.SEED)
    actions = {
        "health": lambda: call("/api/health"),
        "list": lambda: call(f"/api/photos?page_size={PAGE}"),
        "detail": lambda: call(f"/api/photos/{choice.randint(1, folders.size)}"),
        "stats": lambda: call("/api/stats"),
    }
    app = {name: p50(each) * MS for name, each in in_turns(actions, 30 * folders.rounds, warm_up=10).items()}
    database.close_store()
    health = {"unit": "ms", "floor": seconds["health many"], "floor_is": "health"}
    names = {
        "list": f"list of {PAGE}",
        "last": f"list of {PAGE}, the oldest",
        "filtered": f"list of {PAGE}, by device and status",
    }
    names |= {
        "kind": f"list of {PAGE}, by category and intent",
        "stacks": f"list of {PAGE}, one of each stack",
        "analyses": f"analyses, {PAGE}, filtered",
        "detail": "detail",
    }
    for name, what in names.items():
        yield Figure(what=f"{what}, p50", measured=seconds[f"{name} many"], ratio_at_most=3, **health)
        yield Figure(
            what=f"{what}, against {small:,} photos", measured=seconds[f"{name} many"], unit="ms",
            floor=seconds[f"{name} few"], floor_is=f"at {small:,}", ratio_at_most=1.3,
        )  # fmt: skip
    for name, what in {
        "week": "of a week among four",
        "middle": "in the middle",
        "kept": "kept",
    }.items():  # these count or skip rows, so they grow with the library
        yield Figure(what=f"list of {PAGE}, {what}, p50", measured=seconds[f"{name} many"], **health)
    yield Figure(what="stats, p50", measured=seconds["stats many"], ratio_at_most=3, **health)
    within = {"unit": "ms", "floor": app["health"], "floor_is": "health, without HTTP"}
    for name in ("list", "detail", "stats"):
        yield Figure(what=f"{name}, without HTTP, p50", measured=app[name], **within)
    yield Figure(
        what=f"list of {PAGE}, encrypted against not", measured=seconds["list many"], unit="ms",
        floor=seconds["list plain"], floor_is="not encrypted", ratio_at_most=1.2,
    )  # fmt: skip


def searching(folders: seed.Folders) -> Iterator[Figure]:
    """Mixed queries over HTTP, through the verb in this process, and as bare queries of the same index."""
    limit = 30 if folders.size <= 100_000 else 60  # p95, in times of an empty request
    asked = queries(folders.large, 3 * folders.rounds)
    database.open_store(folders.large)
    with Service(folders.large) as sealed, Service(folders.plain) as plain:
        before = sealed.memory()
        first = in_turns({"first": _asking(sealed, lambda: search_path(asked[0]))}, 1)["first"][0]
        words = sealed.memory() - before
        turns = {name: itertools.cycle(asked) for name in ("http", "plain", "verb", "filtered", "bare")}
        operators = itertools.cycle(OPERATORS)
        actions = {
            "health": _asking(sealed, lambda: "/api/health"),
            "http": _asking(sealed, lambda: search_path(next(turns["http"]))),
            "plain": _asking(plain, lambda: search_path(next(turns["plain"]))),
            "verb": lambda: _find(next(turns["verb"]).text),
            "filtered": lambda: _find(f"{next(turns['filtered']).text} {next(operators)}"),
            "bare": lambda: _find_bare(next(turns["bare"]).term),
        }
        seconds = in_turns(actions, TRIES * len(asked), warm_up=len(asked))
    database.close_connections()
    milliseconds = {name: [each * MS for each in times] for name, times in seconds.items()}

    health = {"unit": "ms", "floor": p50(milliseconds["health"]), "floor_is": "health"}

    def figure(
        what: str, share: Callable[[list[float]], float], times: dict[str, list[float]], **budget: float
    ) -> Figure:
        return Figure(what=f"search, {what}", measured=share(times["http"]), **health, **budget)

    yield figure("mixed, p50", p50, milliseconds)
    yield figure("mixed, p95", p95, milliseconds, ratio_at_most=limit)
    yield Figure(
        what="search, mixed, p95, without HTTP", measured=p95(milliseconds["verb"]), unit="ms",
        floor=p95(milliseconds["bare"]), floor_is="bare FTS5 query",
    )  # fmt: skip
    yield Figure(
        what="search, mixed with an operator, p95, without HTTP",
        measured=p95(milliseconds["filtered"]), unit="ms",
        floor=p95(milliseconds["verb"]), floor_is="without operators", ratio_at_most=1.1,
    )  # fmt: skip
    kinds = [query.kind for query in asked] * TRIES
    for kind in dict.fromkeys(kinds):
        chosen = {
            name: list(itertools.compress(times, [each == kind for each in kinds]))
            for name, times in milliseconds.items()
        }
        yield figure(f"{kind}, p50", p50, chosen)
        yield figure(f"{kind}, p95", p95, chosen, ratio_at_most=limit)
    yield Figure(what="search, the first after the start", measured=first * MS, unit="ms")
    yield Figure(what="search, memory that the first one takes and keeps", measured=words / MB, unit="MB")
    fastest = {
        name: [min(times[place :: len(asked)]) for place in range(len(asked))]
        for name, times in milliseconds.items()
    }
    yield Figure(
        what="search, encrypted against not, mean of the fastest",
        measured=statistics.mean(fastest["http"]), unit="ms",
        floor=statistics.mean(fastest["plain"]), floor_is="not encrypted", ratio_at_most=1.2,
    )  # fmt: skip


def uploading(folders: seed.Folders) -> Iterator[Figure]:
    """Uploads of phone screenshots by three clients without pauses, and the same pictures stored by a bare
    loop on three threads.
    """
    bare = floors.BareStore(folders.path("bare"))
    numbers = itertools.count()
    seconds: dict[str, list[float]] = {"sealed": [], "bare": [], "plain": []}
    # Seconds of processor time, which a busy machine changes least.
    spent: dict[str, list[float]] = {"sealed": [], "bare": [], "plain": []}
    with _silent_model() as (address, end):
        sealed_folder = _with_model(folders.empty("uploads"), address)
        plain_folder = _with_model(folders.empty("uploads-plain", encryption=False), address)
        with Service(sealed_folder) as sealed, Service(plain_folder) as plain:
            for turn in range(-1, folders.rounds):
                # The same bytes again would not be decoded.
                pictures = [material.unlike(picture, next(numbers)) for picture in folders.screenshots]
                forms = list(map(upload_form, pictures))
                for name, processor, ready, items in (
                    ("sealed", sealed.processor, lambda: sealed.client().upload, forms),
                    ("bare", time.process_time, bare.ready, pictures),
                    ("plain", plain.processor, lambda: plain.client().upload, forms),
                ):
                    worked = processor()
                    passed = side_by_side(CLIENTS, ready, items)
                    if turn >= 0:  # the first one warms up
                        seconds[name].append(passed)
                        spent[name].append(processor() - worked)
            end()
    rates = {name: len(pictures) / p50(times) for name, times in seconds.items()}
    yield Figure(
        what=f"upload of phone screenshots, {CLIENTS} clients", measured=rates["sealed"], unit="/s",
        floor=rates["bare"], floor_is="bare loop", ratio_at_least=0.5,
    )  # fmt: skip
    yield Figure(
        what="upload, processor time of a screenshot",
        measured=p50(spent["sealed"]) / len(pictures) * MS, unit="ms",
        floor=p50(spent["bare"]) / len(pictures) * MS, floor_is="bare loop",
    )  # fmt: skip
    yield Figure(
        what="upload, encrypted against not", measured=MS / rates["sealed"], unit="ms",
        floor=MS / rates["plain"], floor_is="not encrypted", ratio_at_most=1.2,
    )  # fmt: skip


def uploading_analysed(folders: seed.Folders) -> Iterator[Figure]:
    """Uploads beside their analysis by a model that answers at once, and the same pictures stored by a bare
    loop on as many threads. Last, the memory a quiet minute after.

    Analyses wait for uploads, so the rate of uploads alone would say too little: it is printed with the time
    in which all is analysed, and with the time that the last analysis took after the last upload.
    """
    writer = material.Writer()
    bare = floors.BareStore(folders.path("bare-analysed"))
    numbers = itertools.count()
    rates: dict[str, list[float]] = {"uploads": [], "analysed": [], "bare": []}
    spent: dict[str, list[float]] = {"service": [], "bare": []}
    behind: list[float] = []  # seconds

    def answer(_request: Request) -> dict[str, Any]:
        model.requests.clear()  # each holds a picture
        return _answer(writer)

    with (
        FakeLLM(default=answer) as model,
        Service(_with_model(folders.empty("uploads-analysed"), model.url)) as service,
    ):
        for turn in range(-1, folders.rounds):
            pictures = [material.unlike(picture, next(numbers)) for picture in folders.screenshots]
            forms = list(map(upload_form, pictures))
            worked, begun = service.processor(), time.perf_counter()
            uploads = side_by_side(CLIENTS, lambda: service.client().upload, forms)
            _wait_until_analysed(service)
            analysed, worked = time.perf_counter() - begun, service.processor() - worked
            bare_worked = time.process_time()
            stored = side_by_side(CLIENTS, bare.ready, pictures)
            bare_worked = time.process_time() - bare_worked
            if turn < 0:
                continue  # the first one warms up
            for name, seconds in (("uploads", uploads), ("analysed", analysed), ("bare", stored)):
                rates[name].append(len(pictures) / seconds)
            behind.append(analysed - uploads)
            spent["service"].append(worked / len(pictures))
            spent["bare"].append(bare_worked / len(pictures))
        if folders.rounds > 1:  # left out of a quick run
            client = service.client()
            for number in range(BURST):
                picture = folders.screenshots[number % len(folders.screenshots)]
                client.upload(upload_form(material.unlike(picture, next(numbers))))
            _wait_until_analysed(service)
            time.sleep(QUIET)
            yield Figure(
                what=f"memory, a quiet minute after {BURST} uploads",
                measured=service.memory() / MB, unit="MB", at_most=120,
            )  # fmt: skip
    floor = {"floor": p50(rates["bare"]), "floor_is": "bare loop", "unit": "/s"}
    yield Figure(
        what=f"upload beside analysis, {CLIENTS} clients", measured=p50(rates["uploads"]),
        ratio_at_least=0.5, **floor,
    )  # fmt: skip
    yield Figure(
        what="upload beside analysis, until all is analysed", measured=p50(rates["analysed"]), **floor
    )
    yield Figure(
        what=f"the last analysis, after the last of {len(folders.screenshots)} uploads",
        measured=p50(behind), unit="s", floor=len(folders.screenshots) / p50(rates["uploads"]),
        floor_is="the uploads",
    )  # fmt: skip
    yield Figure(
        what="upload and analysis, processor time of a screenshot",
        measured=p50(spent["service"]) * MS, unit="ms",
        floor=p50(spent["bare"]) * MS, floor_is="bare loop",
    )  # fmt: skip


def uploading_large(folders: seed.Folders) -> Iterator[Figure]:
    """The memory of all processes while three clients upload pictures of nearly the largest allowed size."""
    form = upload_form(material.noise(4096, 4096))
    with (
        _silent_model() as (address, end),
        Service(_with_model(folders.empty("large-uploads"), address)) as service,
    ):
        with MemoryWatch(service, SAMPLE) as watch:
            side_by_side(CLIENTS, lambda: service.client().upload, [form] * CLIENTS * min(folders.rounds, 3))
        end()
    yield Figure(
        what=f"memory, {CLIENTS} clients upload {len(form) // MB} MB each",
        measured=max(watch.samples) / MB, unit="MB",
        floor=watch.samples[0] / MB, floor_is="before", at_most=300,
    )  # fmt: skip


def rotating(folders: seed.Folders) -> Iterator[Figure]:
    """The rotation of the database key beside clients that list photos, and one that writes, without pauses;
    they wait for all of it.
    """
    spent, reads, writes, refused = [], [], [], 0
    scale = 100_000 / folders.size
    with Service(folders.large) as service:
        for _ in range(min(folders.rounds, 3)):
            with (
                PauseWatch(
                    service, lambda client: client.get(f"/api/photos?page_size={PAGE}"), CLIENTS - 1
                ) as reading,
                PauseWatch(service, lambda client: client.write(), 1) as writing,
            ):
                output = service.run("jobs", "rotate-keys", "--force")
            spent.append(float(re.search(r"after ([0-9.]+) s", output)[1]))
            reads.append(reading.longest)
            writes.append(writing.longest)
            refused += reading.refused + writing.refused
    copied = floors.copy(database.Store(folders.large).database, folders.path("copy"))
    yield Figure(
        what="rotation of the database key, for 100,000 photos", measured=p50(spent) * scale, unit="s",
        floor=copied * scale, floor_is="file copied, flushed",
    )  # fmt: skip
    for who, longest in (("reader", reads), ("writer", writes)):
        yield Figure(
            what=f"rotation, the longest pause of a {who} ({refused} refused)",
            measured=max(longest), unit="s", at_most=2 * folders.size / 10_000,
        )  # fmt: skip


def cleaning(folders: seed.Folders) -> Iterator[Figure]:
    """The clean-up of the oldest thousand photos, beside one client that reads and one that writes without
    pauses.
    """
    oldest = min(OLDEST, -(-folders.size // 2))
    database.open_store(folders.large)
    with database.scope():
        due = Photo.select(Photo.created_at).order_by(Photo.id).offset(oldest).limit(1).scalar() + timedelta(
            days=seed.DAYS
        )
    spent: dict[str, float] = {}
    last = time.perf_counter()

    def note(stage: str, done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        spent[stage] = spent.get(stage, 0.0) + now - last
        last = now

    settings = dataclasses.replace(folders.large, retention_days=seed.DAYS)
    with Service(folders.large) as service, contextlib.ExitStack() as watches:
        reading = watches.enter_context(
            PauseWatch(service, lambda client: client.get(f"/api/photos?page_size={PAGE}"), 1)
        )
        writing = watches.enter_context(PauseWatch(service, lambda client: client.write(), 1))
        last = time.perf_counter()
        cleaned = cleanup.clean(settings, now=due, progress=note)
    database.close_connections()
    copied = floors.copy(database.store().database, folders.path("copy"))
    if cleaned.photos != oldest:
        raise RuntimeError(f"{cleaned.photos} photos were removed instead of {oldest}")
    yield Figure(
        what=f"clean-up, a photo of the oldest {oldest:,}", measured=spent["photos"] / oldest * MS, unit="ms"
    )
    yield Figure(what="clean-up, looking for files without a row", measured=spent["files"], unit="s")
    yield Figure(
        what="clean-up, index, free pages and log",
        measured=spent["database"],
        unit="s",
        floor=copied,
        floor_is="file copied, flushed",
    )
    refused = f"({reading.refused + writing.refused} refused)"
    yield Figure(what="clean-up, the longest pause of a reader", measured=reading.longest, unit="s")
    yield Figure(
        what=f"clean-up, the longest pause of a writer {refused}", measured=writing.longest, unit="s"
    )


GROUPS = {
    "analysis": analysing,  # first: it fills the queue, which must be empty when a service starts
    "start": starting,
    "list": listing,
    "search": searching,
    "chat": chatting,
    "cleanup": cleaning,
    "keys": rotating,
    "upload": uploading,
    "burst": uploading_analysed,
    "found": finding,
    "threads": joining,
    "tables": tables.listing,
    "memory": uploading_large,
    "ocr": local_reading,
}


def _answer(writer: material.Writer) -> dict[str, Any]:
    """The answer of a vision model, with the requested fields."""
    return {
        name: value
        for name, value in msgspec.to_builtins(writer.findings()).items()
        if name in reading.EXPECTED_FIELDS
    }


def _with_model(settings: Settings, address: str) -> Settings:
    """With a model at `address`, and without reading on this machine, which `local_reading` measures."""
    return dataclasses.replace(
        settings,
        dev_mode=True,
        llm_base_url=address,
        llm_model="benchmark",
        llm_api_key="no-secret",
        read_locally=False,
    )


@contextlib.contextmanager
def _silent_model() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a model that never answers, and a function that ends the waiting for it.

    The pool's two threads then only wait and leave the machine to the uploads. A service that stops would
    wait with them.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://localhost:{listener.getsockname()[1]}/v1", listener.close


def _store(settings: Settings, pictures: list[bytes]) -> None:
    database.open_store(settings)
    with database.scope():
        for number, picture in enumerate(pictures):
            upload = uploads.Upload("phone_1", f"Screenshot_{number}.png", utc_now())
            uploads.store(seed.upload_of(picture), upload, now=utc_now())


def _wait_until_analysed(service: Service) -> None:
    client = service.client()
    while (stats := msgspec.json.decode(client.get("/api/stats")))["pending"] + stats["processing"]:
        time.sleep(0.2)
    if stats["errors"]:
        raise RuntimeError("an analysis failed")


def queries(settings: Settings, each: int) -> list[material.Query]:
    """`each` queries of every kind, for texts in the index of a data folder."""
    database.open_store(settings)
    with database.scope():
        documents = dict(Vocabulary.select(Vocabulary.term, Vocabulary.documents).tuples())
        texts = [text for (text,) in Analysis.select(Analysis.visible_text).limit(each * 4).tuples()]
    database.close_connections()
    return material.Writer().queries(documents, texts, each)


def _asking(service: Service, path: Callable[[], str]) -> Callable[[], bytes]:
    client = service.client()
    return lambda: client.get(path())


def _called(settings: Settings) -> Callable[[str], bytes]:
    """A function that calls the application of this process, without a server."""
    app = create_app(dataclasses.replace(settings, api_key=API_KEY))
    bare = create_environ(headers={"Authorization": f"Bearer {API_KEY}"})

    def call(path: str) -> bytes:
        place, _, query = path.partition("?")
        environ = {**bare, "PATH_INFO": place, "QUERY_STRING": query}
        body, status, _ = run_wsgi_app(app, environ, buffered=True)
        if status != "200 OK":
            raise RuntimeError(f"{path}: {status}")
        return b"".join(body)

    return call


def search_path(query: material.Query) -> str:
    return f"/api/search?{urlencode({'q': query.text, 'limit': PAGE})}"


def _find(text: str) -> search.Found:
    with database.scope():
        return search.find(text, limit=PAGE, now=utc_now())


def _find_bare(term: str) -> list[int]:
    with database.scope():
        return floors.bare_query(term)
