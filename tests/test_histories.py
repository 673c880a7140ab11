"""Random histories of a library: photos are uploaded, kept, tagged, thrown away, brought back and deleted,
time passes, retention deletes, and the process is killed at any statement or removal of a file. Whatever
happens, no kept photo is lost, nothing in the trash is shown or found, and a deleted photo leaves no bytes.

A model of the library, a dict, takes the same steps. After a kill, what was done is either complete or not
done at all, photo by photo only for the clean-up, which works in batches.
"""

import contextlib
import shutil
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import agenda
import database
import lexicon
import models
import photos
import readings
import search
import uploads
from clock import iso, utc_now
from curation import batch, retention, trash, words
from engines.lines import Line, Page
from models import Analysis
from settings import Settings
from spool import Spool
from tests.support.beginning import first_start
from tests.support.drawing import draw
from tests.support.properties import QUICK
from upkeep import check, cleanup, findings

DAY = timedelta(days=1)
RETENTION = 30
PICTURES = [draw(str(number), size=(8, 8)) for number in range(3)]
TAGS = ("Work", "Home")
ACTIONS = ("keep", "trash", "restore", "keep", "trash", "tag", "untag", "unkeep", "reprocess", "delete")


def kills(most):
    """After how many steps the process is killed, or None: it lives."""
    return st.one_of(st.none(), st.integers(0, most))


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at the `at`th statement or removal of a file."""

    def __init__(self):
        self.left = -1
        self._unlink = Path.unlink

    @contextlib.contextmanager
    def after(self, steps):
        self.left = 10**9 if steps is None else steps
        database.db.query_hooks.append(self._step)
        Path.unlink = lambda path, *rest, **options: (self._step(), self._unlink(path, *rest, **options))[1]
        try:
            yield
        finally:
            database.db.query_hooks.remove(self._step)
            Path.unlink = self._unlink

    def _step(self, *_):
        self.left -= 1
        if self.left < 0:  # from then on the process does nothing more
            raise Killed


class Library(RuleBasedStateMachine):
    """The library beside its model: photo id -> `kept`, `tags`, `created`, `trashed` (None: not there), and
    whether its entry in the agenda is `dismissed`.
    """

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp(dir=tempfile.gettempdir()))
        shutil.copytree(first_start(), self.folder / "data")
        self.settings = Settings(data_dir=self.folder / "data", retention_days=RETENTION, language="en")
        database.open_store(self.settings)
        self.now = utc_now()
        self.model = {}
        self.deleted = set()
        self.uploads = 0
        self.killer = Killer()
        for number in range(3):
            self.upload(number, None)
        self.act("keep", {0}, TAGS[0], None)

    # ---------------------------------------------------------------------------------------------- the steps

    @rule(number=st.integers(0, 2), kill=kills(15))
    def upload(self, number, kill):
        self.uploads += 1
        name = f"word{self.uploads}x"

        def store():
            spool = Spool(uploads.MAX_FILE)
            spool.write(PICTURES[number])
            with contextlib.closing(spool):
                about = uploads.Upload("unknown", name, self.now, local_media_store_id=name)
                return uploads.store(spool, about, now=self.now).id

        before = set(self.seen())
        self.run(store, kill)
        for photo_id in set(self.seen()) - before:
            self.model[photo_id] = {"kept": False, "tags": set(), "created": self.now, "trashed": None}
            self.model[photo_id]["dismissed"] = False
            due = (self.now + (photo_id % 28 + 1) * DAY).date()
            line = Line(f"word{photo_id}y is due {due}", 0.9, 0, 0, 7, 7)
            with database.scope(), database.db.atomic():
                analysed = Analysis.update(status="done", visible_text=f"word{photo_id}y", summary="A word.")
                analysed.where(Analysis.photo == photo_id).execute()
                lexicon.index(photo_id)
                readings.save(photo_id, Page(8, 8, [line]), reader="small")
                agenda.renew(photo_id, readings.page(photo_id), now=self.now)

    @rule(
        action=st.sampled_from(ACTIONS),
        chosen=st.sets(st.integers(0, 5), min_size=1, max_size=3),
        tag=st.sampled_from(TAGS),
        kill=kills(15),
    )
    @precondition(lambda self: self.model)
    def act(self, action, chosen, tag, kill):
        known = sorted(self.model)
        ids = sorted({known[number % len(known)] for number in chosen})
        after = {photo_id: {**state, "tags": set(state["tags"])} for photo_id, state in self.model.items()}
        for photo_id in ids:
            state = after[photo_id]
            there = state["trashed"] is None
            if action in ("keep", "unkeep") and there:
                state["kept"] = action == "keep"
            elif action == "tag" and there:
                state["tags"].add(tag)
            elif action == "untag" and there:
                state["tags"].discard(tag)
            elif action == "trash" and there:
                state["trashed"] = self.now
            elif action == "restore":
                state["trashed"] = None
            elif action == "delete":
                del after[photo_id]
        ended = self.run(lambda: batch.run(action, [*ids, 10**9], tag, now=self.now), kill)
        self.settle(after, ended=ended)

    @rule(text=st.sampled_from(("", "mine")), number=st.integers(0, 5))
    @precondition(lambda self: any(state["trashed"] is None for state in self.model.values()))
    def write(self, text, number):
        here = sorted(photo_id for photo_id, state in self.model.items() if state["trashed"] is None)
        photo_id = here[number % len(here)]
        changes = words.Changes(texts={"note": text, "title": text})
        self.run(lambda: words.change(photo_id, changes), None)

    @rule(kill=kills(8), undone=st.booleans(), number=st.integers(0, 5))
    @precondition(lambda self: any(state["trashed"] is None for state in self.model.values()))
    def dismiss(self, kill, undone, number):
        here = sorted(photo_id for photo_id, state in self.model.items() if state["trashed"] is None)
        photo_id = here[number % len(here)]
        with database.scope():
            (item,) = agenda.on_photos([photo_id])[photo_id]
        verb = agenda.undo_dismissal if undone else agenda.dismiss
        self.run(lambda: verb(item.id, now=self.now), kill)
        with database.scope():
            (now,) = agenda.on_photos([photo_id])[photo_id]
            agenda.renew(photo_id, readings.page(photo_id), now=self.now)
        assert now.dismissed in (item.dismissed, not undone)
        self.model[photo_id]["dismissed"] = now.dismissed

    @rule(kill=kills(8))
    def keep_what_expires(self, kill):
        due = self.now - timedelta(days=RETENTION) + retention.SOON
        after = {photo_id: {**state} for photo_id, state in self.model.items()}
        for state in after.values():
            if state["trashed"] is None and state["created"] < due:
                state["kept"] = True
        ended = self.run(lambda: retention.keep_expiring(self.settings, now=self.now), kill)
        self.settle(after, ended=ended)

    @rule(days=st.sampled_from((1, 10, 25)))
    def wait(self, days):
        self.now += days * DAY

    @rule(days=st.sampled_from((31, 8, 0)), kill=kills(30))
    def clean_up(self, days, kill):
        self.wait(days)
        due = {
            photo_id
            for photo_id, state in self.model.items()
            if (
                state["trashed"] < self.now - trash.DAYS
                if state["trashed"]
                else not state["kept"] and state["created"] < self.now - timedelta(days=RETENTION)
            )
        }
        ended = self.run(lambda: cleanup.clean(self.settings, now=self.now), kill, in_scope=False)
        left = set(self.seen())
        gone = self.model.keys() - left
        assert gone <= due, "only what is due is deleted"
        assert gone == due or not ended
        for photo_id in gone:
            del self.model[photo_id]
        self.deleted |= gone

    @rule(kill=kills(8))
    def empty_the_trash(self, kill):
        after = {photo_id: state for photo_id, state in self.model.items() if state["trashed"] is None}
        ended = self.run(lambda: trash.empty(now=self.now), kill, in_scope=False)
        self.settle(after, ended=ended)

    @rule()
    def end_analyses(self):
        """Analyses that were requested again end, also of photos that went to the trash meanwhile."""
        with database.scope(), database.db.atomic():
            Analysis.update(status="done").execute()

    # --------------------------------------------------------------------------------------------- the claims

    @invariant()
    def what_is_there_is_shown_and_nothing_else(self):
        if not hasattr(self, "model"):
            return
        here = {photo_id for photo_id, state in self.model.items() if state["trashed"] is None}
        away = self.model.keys() - here
        with database.scope():
            assert set(self.page(photos.Filters())) == here
            assert set(self.page(photos.Filters(), "taken")) == here
            for dismissed in (False, True):
                total, items = agenda.listed(dismissed=dismissed)
                listed = {item.photo_id: item.dismissed for item in items}
                assert total == len(listed)
                assert listed == {
                    photo_id: self.model[photo_id]["dismissed"]
                    for photo_id in here
                    if dismissed or not self.model[photo_id]["dismissed"]
                }
            kept = {photo_id for photo_id in here if self.model[photo_id]["kept"]}
            assert set(self.page(photos.Filters(kept=True))) == kept
            for tag in TAGS:
                tagged = {photo_id for photo_id in here if tag in self.model[photo_id]["tags"]}
                assert set(self.page(photos.Filters(tag=tag.upper()))) == tagged
                counted = {row["tag"]: row["photos"] for row in words.every_tag()}
                assert counted.get(tag, 0) == len(tagged)
            total, items = photos.trashed_page(1, 100)
            assert (total, {item["id"] for item in items}) == (len(away), set(away))
            assert [item["deleted_at"] for item in items] == sorted(
                (iso(self.model[photo_id]["trashed"]) for photo_id in away), reverse=True
            )
            assert {item["id"]: item["kept"] for item in items} == {
                photo_id: self.model[photo_id]["kept"] for photo_id in away
            }
            for photo_id in [*sorted(self.model)[-3:], *sorted(self.deleted)[-2:]]:
                hits = [hit.photo_id for hit in search.find(f"word{photo_id}y", now=self.now).items]
                assert (photo_id in hits) == (photo_id in here)
                assert not set(hits) & (away | self.deleted)
            assert {hit.photo_id for hit in search.find("mine", limit=100, now=self.now).items} <= here

    def teardown(self):
        if not hasattr(self, "model"):
            return
        try:
            # Two days later nothing is on its way any more: what a kill has left is removed.
            cleanup.clean(replace(self.settings, retention_days=0), now=max(self.now, utc_now()) + 2 * DAY)
            with database.scope():
                rows = list(models.Photo.select())
            files = {path for path in (self.folder / "data" / "photos").rglob("*") if path.is_file()}
            assert files == {
                self.folder / "data" / path
                for row in rows
                for path in (row.original_path, row.thumbnail_path)
            }
            wrong = [
                str(kind) for kind in check.check(self.settings, findings.Orders(now=utc_now())) if kind.wrong
            ]
            assert wrong == []
        finally:
            database.close_store()
            shutil.rmtree(self.folder)

    # ------------------------------------------------------------------------------------------- how it works

    def run(self, verb, kill, *, in_scope=True):
        """Call a verb, and kill the process after `kill` steps; returns whether it came to its end."""
        scope = database.scope() if in_scope else contextlib.nullcontext()
        try:
            with scope, self.killer.after(kill):
                verb()
        except Killed:
            database.close_store()
            database.open_store(self.settings)
            return False
        return True

    def settle(self, after, *, ended):
        """After a step, the library is as `after`, or, if the step was killed, as it was before."""
        now = self.seen()
        assert now == self.shape(after) or (not ended and now == self.shape(self.model))
        if now == self.shape(after):
            self.deleted |= self.model.keys() - after.keys()
            self.model = after

    def seen(self):
        """The library as it is: photo id -> whether it is kept, whether it is in the trash, and its tags."""
        with database.scope():
            items = photos.list_items(self.page(photos.Filters())) + photos.trashed_page(1, 100)[1]
        return {
            item["id"]: (item["kept"], item["deleted_at"] is not None, tuple(item["tags"])) for item in items
        }

    def shape(self, model):
        return {
            photo_id: (state["kept"], state["trashed"] is not None, tuple(sorted(state["tags"])))
            for photo_id, state in model.items()
        }

    def page(self, filters, order="uploaded"):
        total, ids = photos.ids_of_page(1, 100, filters, order)
        assert total == len(ids)
        return ids


@pytest.mark.slow
@pytest.mark.hypothesis
def test_no_history_loses_a_kept_photo_shows_a_trashed_one_or_leaves_bytes_of_a_deleted_one(
    monkeypatch,
):
    for module in (cleanup, trash):
        monkeypatch.setattr(module, "ROOM", 0)
    examples = hypothesis.settings.default.max_examples  # of the profile: 20, 100 or 2,000
    few = examples <= hypothesis.settings.get_profile(QUICK).max_examples
    run_state_machine_as_test(
        Library,
        settings=hypothesis.settings(
            max_examples=8 if few else 2 * examples,  # `make fuzz` runs thousands
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        ),
    )
