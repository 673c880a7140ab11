"""The scope of a query: what its operators and the filters demand, as conditions of SQL and of the index.

Where there are words to search for, the index finds the photos. Filters are terms of it as far as they can
be, and the rest is looked up for each match, the newest first, until there are enough: so an old photo is
found however many newer ones have the same words. Where there are no words, an index of the lists finds what
passes, the latest picture first, because photos without text are in no search index.

Every lookup is in an index. To count all that passes, SQLite walks once through the index of a filter, of the
kept photos, of the sensitive ones, of a tag or, at most, of all photos.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

import photos
import records
import tallies
from clock import iso
from lexicon import OPEN, folded_tag, rows
from queries.operators import Operator, Period
from queries.wording import Query, days_within, read
from rules import apps, holdings
from vocabulary import counts, filter_term

MOST_NAMED = 24  # apps or devices that one value may mean: they differ in upper and lower case only

_OF_RECORDS = ("type", "seller", "amount")
# Operators whose values may be on a photo: a guarded query with one finds none that is withheld.
_TELLING = {"app", "has", "tag", *_OF_RECORDS}
_COLUMNS = {"category": "content_category", "intent": "intent", "device": "device_id", "app": "app_name"}
# The indexes of lists in the order of the pictures' time, by the column of their filter.
_INDEXES = {
    "app_name": "analyses_app_taken",
    "content_category": "analyses_category_taken",
    "device_id": "analyses_device_taken",
    "intent": "analyses_intent_taken",
}

# What is looked up for each match, by the operator or the value of `is`.
_LOOKUPS = {
    "tag": "EXISTS (SELECT 1 FROM photo_tags WHERE photo_id = {id} AND folded = ?)",
    "has": "EXISTS (SELECT 1 FROM marks WHERE photo_id = {id} AND holds & ?)",
    "unread": "NOT EXISTS (SELECT 1 FROM marks WHERE photo_id = {id} AND opened)",
    "sensitive": """EXISTS (SELECT 1 FROM analyses INDEXED BY analyses_sensitive
        WHERE sensitive <> '' AND photo_id = {id})""",
    "kept": "EXISTS (SELECT 1 FROM analyses INDEXED BY analyses_kept WHERE kept = 1 AND photo_id = {id})",
}

Values = list[Any]
_IDS = msgspec.json.Decoder(list[int])


class Choice(msgspec.Struct):
    """A condition on a column of an analysis: one of these values, or none of them."""

    column: str
    values: list[str]
    excludes: bool = False


class Scope(msgspec.Struct):
    """The conditions for every match of a query."""

    choices: list[Choice] = []
    since: datetime | None = None
    until: datetime | None = None
    outside: list[Period] = []  # of these, the picture was not taken
    lookups: list[tuple[str, Values]] = []  # SQL, in which {id} is the photo's, with its values
    tag: str = ""  # the first one, folded
    is_kept: bool = False
    is_sensitive: bool = False
    # In the query language of the index.
    conditions: list[str] = []
    excluded: list[str] = []
    excluded_terms: list[str] = []  # of filters
    phrases: list[str] = []
    postings: int = 0  # of the terms of filters and days
    is_empty: bool = False  # no photo can pass
    first_id: int = 0  # photos with a smaller id do not pass
    guarded: bool = False  # as of the query

    @classmethod
    def of(cls, operators: Iterable[Operator], query: Query, filters: photos.Filters) -> "Scope":
        """The scope of a query. `filters` are those of a list: exactly as they are stored."""
        phrases = [quoted(" ".join(phrase)) for phrase in query.phrases]
        scope = cls(phrases=phrases, guarded=query.guarded)
        scope._limit(filters.since, filters.until)
        asked: dict[tuple[str, bool], list[str]] = {}
        of_records: list[Operator] = []
        for operator in operators:
            if operator.period is not None and operator.excludes:
                scope.outside.append(operator.period)
            elif operator.period is not None:
                scope._limit(*operator.period)
            elif operator.name == "word":
                scope.excluded.append(quoted(operator.value))
            else:
                asked.setdefault((operator.name, operator.excludes), []).append(operator.value)
                if operator.name in _OF_RECORDS or (operator.name, operator.value) == ("has", "amount"):
                    of_records.append(operator)
        chosen = [Choice(column, [value]) for column, value in filters.values().items() if value]
        for (name, excludes), values in asked.items():
            if name in _COLUMNS:
                meant = [known for value in values for known in _named(name, value)]
                chosen.append(Choice(_COLUMNS[name], meant, excludes))
            elif name not in _OF_RECORDS:
                for value in dict.fromkeys(values):
                    scope._look_up(name, value, excludes)
        for choice in chosen:
            scope._choose(choice)
        scope._look_up_records(of_records)
        if query.guarded and (filters.app or any(name in _TELLING for name, _ in asked)):
            scope.lookups.append((OPEN, []))
        return scope

    @property
    def narrows(self) -> bool:
        """Whether it demands more than phrases."""
        return bool(self.choices or self.lookups or self.excluded or self._times(""))

    # -------------------------------------------------------------------------------------------- with words

    def limit_to_days(self) -> bool:
        """Add the days of the time range to the index's conditions; returns whether any photo is of them."""
        if self.since is None and self.until is None:
            return True
        days = days_within(self.since, self.until)
        self.conditions += [any_of(days)] if days else []
        self.postings += sum(counts(days).values())
        return bool(days)

    def newest(self, conditions: Iterable[str], most: int) -> list[int]:
        """The ids of the newest photos that meet `conditions` of the index in this scope, at most `most`."""
        conditions = list(conditions)
        sql, values = self.matching(conditions)
        found = f"{sql} ORDER BY photo_index.rowid DESC LIMIT {most}"
        if self.guarded:
            redacted, more = self.matching(conditions, index="redacted_index")
            redacted = f"{redacted} ORDER BY redacted_index.rowid DESC LIMIT {most}"
            found = (
                f"SELECT * FROM ({found}) UNION ALL SELECT * FROM ({redacted}) ORDER BY 1 DESC LIMIT {most}"  # noqa: S608
            )
            values += more
        # One row with all ids takes half the time of 2,000 rows.
        ids = rows(f"SELECT json_group_array(rowid) FROM ({found})", *values)[0][0]  # noqa: S608
        return sorted(_IDS.decode(ids), reverse=True)

    def matching(self, conditions: Iterable[str], *, index: str = "photo_index") -> tuple[str, Values]:
        """The SQL for photos that meet `conditions` of an index in this scope, and its values."""
        wanted = " AND ".join([*self.conditions, *self.phrases, *conditions])
        if excluded := self.excluded + self.excluded_terms:
            wanted = f"({wanted}) NOT ({' OR '.join(excluded)})"
        sql = f"SELECT {index}.rowid FROM {index}"  # noqa: S608
        within: list[str] = [f"{index} MATCH ?"]
        values: Values = [wanted]
        if self.first_id:
            within.append(f"{index}.rowid >= ?")
            values.append(self.first_id)
        if self.guarded and index == "photo_index":
            within.append(OPEN.format(id="photo_index.rowid"))
        if times := self._times("original_timestamp"):
            # The index knows only whole days; the photos know the time. CROSS keeps SQLite from starting with
            # the photos.
            sql += f" CROSS JOIN photos ON photos.id = {index}.rowid"
        for condition, its_values in (*times, *self._apps(), *self.lookups):
            within.append(condition.format(id=f"{index}.rowid"))
            values += its_values
        return f"{sql} WHERE {' AND '.join(within)}", values

    def _apps(self) -> Iterable[tuple[str, Values]]:
        """Other texts may have the words of an app's name, too."""
        for choice in self.choices:
            if choice.column == "app_name":
                of_app = f"app_name IN ({_marks(choice.values)}) AND photo_id = {{id}}"
                found = f"EXISTS (SELECT 1 FROM analyses INDEXED BY analyses_app WHERE {of_app})"  # noqa: S608
                yield _unless(choice.excludes, found), list(choice.values)

    # ----------------------------------------------------------------------------------------- without words

    def listed(self, most: int) -> tuple[int, list[int]]:
        """How many photos pass, and the ids of the first `most` of them, the latest picture first."""
        if (filters := self._as_filters()) is not None:
            return photos.ids_of_page(1, most, filters, "taken")
        source = self._source()
        within, values = self._within()
        if self.tag:
            within, values = f"t.folded = ? AND {within}", [self.tag, *values]
        elif self.is_kept:
            within = f"a.kept = 1 AND {within}"  # literal, as in the partial index
        elif self.is_sensitive:
            within = f"a.sensitive <> '' AND {within}"
        among = f"FROM {source} WHERE {within}"
        total = rows(f"SELECT COUNT(*) {among}", *values)[0][0]
        order = "t.taken_at DESC, t.photo_id DESC" if self.tag else "a.taken_at DESC, a.photo_id DESC"
        page = f"SELECT a.photo_id {among} ORDER BY {order} LIMIT ?"
        return total, [row[0] for row in rows(page, *values, most)] if total else []

    def count(self, most: int) -> int:
        """How many photos from `first_id` on pass, at most `most`."""
        within, values = self._within()
        passing = f"SELECT 1 FROM analyses AS a WHERE a.photo_id >= ? AND {within} LIMIT ?"  # noqa: S608
        return len(rows(passing, self.first_id, *values, most))

    def _as_filters(self) -> photos.Filters | None:
        """The same as filters of a list, which has its totals; None where that has no such filter."""
        values = {choice.column: choice.values[0] for choice in self._single()}
        if len(values) < len(self.choices) or self.lookups or self.excluded or self.outside:
            return None
        return photos.Filters(
            device_id=values.get("device_id"),
            category=values.get("content_category"),
            intent=values.get("intent"),
            app=values.get("app_name"),
            since=self.since,
            until=self.until,
        )

    def _source(self) -> str:
        """The table and index that have all that may pass, in the order of a list."""
        if self.tag:
            return "photo_tags AS t INDEXED BY photo_tags_taken CROSS JOIN analyses AS a USING (photo_id)"
        if self.is_kept:
            return "analyses AS a INDEXED BY analyses_kept_taken"
        if self.is_sensitive:
            return "analyses AS a INDEXED BY analyses_sensitive_taken"
        rarest = min(
            self._single(),
            key=lambda choice: tallies.photos({choice.column: choice.values[0]}),
            default=None,
        )
        return f"analyses AS a INDEXED BY {_INDEXES[rarest.column] if rarest else 'analyses_taken'}"

    def _single(self) -> list[Choice]:
        return [choice for choice in self.choices if len(choice.values) == 1 and not choice.excludes]

    def _within(self) -> tuple[str, Values]:
        """The conditions of a list, and their values."""
        conditions: list[tuple[str, Values]] = [
            (_unless(choice.excludes, f"a.{choice.column} IN ({_marks(choice.values)})"), list(choice.values))
            for choice in self.choices
        ]
        conditions += self._times("a.taken_at")
        conditions += [(sql.format(id="a.photo_id"), values) for sql, values in self.lookups]
        if self.excluded:
            having = "SELECT rowid FROM photo_index WHERE photo_index MATCH ?"
            excluded: Values = [" OR ".join(self.excluded)]
            if self.guarded:
                redacted = "SELECT rowid FROM redacted_index WHERE redacted_index MATCH ?"
                having += f" AND {OPEN.format(id='photo_index.rowid')} UNION ALL {redacted}"
                excluded *= 2
            conditions.append((f"a.photo_id NOT IN ({having})", excluded))
        return (
            " AND ".join(sql for sql, _ in conditions) or "true",
            [value for _, values in conditions for value in values],
        )

    # ---------------------------------------------------------------------------------------------- building

    def _limit(self, since: datetime | None, until: datetime | None) -> None:
        """Take the narrower end of two time ranges."""
        if since and (self.since is None or since > self.since):
            self.since = since
        if until and (self.until is None or until < self.until):
            self.until = until

    def _times(self, column: str) -> list[tuple[str, Values]]:
        conditions: list[tuple[str, Values]] = []
        if self.since:
            conditions.append((f"{column} >= ?", [iso(self.since)]))
        if self.until:
            conditions.append((f"{column} < ?", [iso(self.until)]))
        for since, until in self.outside:
            conditions.append((f"({column} < ? OR {column} >= ?)", [iso(since) or "", iso(until) or "~"]))
        return conditions

    def _choose(self, choice: Choice) -> None:
        if choice.excludes and not choice.values:
            return
        self.choices.append(choice)
        self.is_empty = self.is_empty or not choice.values
        if choice.column == "app_name":
            names = [read(app).sequence for app in choice.values]
            if all(names) and names and not choice.excludes:  # every text of the app has its name
                self.conditions.append(any_of(" ".join(name) for name in names))
            return
        name = next(name for name, column in _COLUMNS.items() if column == choice.column)
        of_filter = [filter_term(name, value) for value in choice.values]
        if choice.excludes:
            self.excluded_terms += map(quoted, of_filter)
        elif of_filter:
            self.conditions.append(any_of(of_filter))
            self.postings += sum(counts(of_filter).values())

    def _look_up_records(self, operators: list[Operator]) -> None:
        """What must hold of one record, and what of none of these."""
        wanted = [
            _of_record(operator) for operator in operators if not operator.excludes and not operator.types
        ]
        types = [name for operator in operators if not operator.excludes for name in operator.types]
        if types:
            wanted.append((f"type IN ({_marks(types)})", types))
        if self.guarded:
            wanted.append(("plain IS NOT NULL", []))
        if any(not operator.excludes for operator in operators):
            self.lookups.append(_having(wanted))
        for operator in operators:
            if operator.excludes:
                sql, values = _having([*wanted, _of_record(operator)])
                self.lookups.append((_unless(True, sql), values))

    def _look_up(self, name: str, value: str, excludes: bool) -> None:
        if (name, value) == ("has", "amount"):
            return
        values: Values = []
        if name == "tag":
            values = [folded_tag(value)]
            self.tag = self.tag or ("" if excludes else values[0])
        elif name == "has":
            values = [holdings.bit(value)]
        elif not excludes:
            self.is_sensitive = self.is_sensitive or value == "sensitive"
            self.is_kept = self.is_kept or value == "kept"
        sql = _LOOKUPS[value if name == "is" else name]
        self.lookups.append((_unless(excludes, sql), values))


def quoted(term: str) -> str:
    """A string of FTS5's query language. Terms never contain quotes."""
    return f'"{term}"'


def any_of(wanted: Iterable[str]) -> str:
    """A condition of FTS5: one of these terms."""
    return f"({' OR '.join(map(quoted, wanted))})"


def _having(conditions: list[tuple[str, Values]]) -> tuple[str, Values]:
    """That a photo has a record for which these conditions hold."""
    within = " AND ".join(["photo_id = {id}", *(sql for sql, _ in conditions)])
    values = [value for _, its_values in conditions for value in its_values]
    return f"EXISTS (SELECT 1 FROM records WHERE {within})", values  # noqa: S608


def _of_record(operator: Operator) -> tuple[str, Values]:
    """The condition that an operator is for a record."""
    if operator.types:
        return f"type IN ({_marks(list(operator.types))})", list(operator.types)
    if operator.name == "seller":
        return "instr(party, ?)", [records.is_of(operator.value)]
    conditions = ["amount IS NOT NULL"]
    values: Values = []
    if (amount := operator.amount) is not None:
        equal = "=" if amount.whole else ""
        for sign, bound in ((">", amount.least), ("<", amount.most)):
            if bound is not None:
                conditions.append(f"abs(CAST(amount AS REAL)) {sign}{equal} ?")
                values.append(bound)
        if amount.currency:
            conditions.append("currency = ?")
            values.append(amount.currency)
    return " AND ".join(conditions), values


def _unless(excludes: bool, sql: str) -> str:
    return f"NOT {sql}" if excludes else sql


def _marks(values: list[str]) -> str:
    return ", ".join("?" * len(values))


def _named(name: str, value: str) -> list[str]:
    """The stored values that a value of an operator means, whatever their upper and lower case is."""
    if name == "app":
        names = dict.fromkeys((value, *filter(None, apps.names_of(value))))
        sql = "SELECT DISTINCT app_name FROM tallies WHERE app_name = ? COLLATE NOCASE LIMIT ?"
        return list(dict.fromkeys(row[0] for name in names for row in rows(sql, name, MOST_NAMED)))
    if name == "device":
        # There are few of them.
        sql = """SELECT device_id FROM sync_states
            WHERE device_id = ? COLLATE NOCASE OR device_name = ? COLLATE NOCASE LIMIT ?"""
        return [row[0] for row in rows(sql, value, value, MOST_NAMED)]
    return [value]
