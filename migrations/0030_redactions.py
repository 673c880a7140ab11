"""What may be searched of sensitive screenshots for those who must not learn what is sensitive on them.

`redactions` has their texts without that, and `redacted_index` is the index of these. `hidden` counts the
photos that have a term only in what was cut out. Every stored photo is judged again, in the background, from
the text that was read on it; until then, its words find it for its owner only. SQLite writes each row of the
analyses once: some seconds for 100,000 photos.
"""

STATEMENTS = (
    """
    CREATE TABLE redactions (
        photo_id INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
        texts TEXT NOT NULL
    ) STRICT
    """,
    """
    CREATE VIRTUAL TABLE redacted_index USING fts5(
        tokens, content='', contentless_delete=1, detail=full,
        tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
    )
    """,
    "ALTER TABLE vocabulary ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0",
    "UPDATE analyses SET judged = 0",
    # As before, with `withheld`.
    "DROP VIEW IF EXISTS shown",
    """
    CREATE VIEW shown AS
    SELECT
        a.photo_id, a.device_id, a.taken_at, a.status, a.app_name, a.content_category, a.intent, a.entities,
        a.visible_text, a.kept, a.sensitive, a.cleared,
        EXISTS (SELECT 1 FROM redactions WHERE photo_id = a.photo_id)
            OR (a.judged = 0 AND own.photo_id IS NOT NULL) AS withheld,
        coalesce(nullif(own.title, ''), a.title) AS title,
        coalesce(nullif(own.summary, ''), a.summary) AS summary,
        coalesce(nullif(own.text, ''), a.visible_text) AS text,
        coalesce(own.note, '') AS note,
        coalesce(own.title, '') AS own_title,
        coalesce(own.summary, '') AS own_summary,
        coalesce(own.text, '') AS own_text,
        (SELECT json_group_array(tag) FROM
            (SELECT tag FROM photo_tags WHERE photo_id = a.photo_id ORDER BY folded)) AS tags
    FROM analyses AS a LEFT JOIN own_words AS own ON own.photo_id = a.photo_id
    """,
)


def up(migrator, db):
    for statement in STATEMENTS:
        db.execute_sql(statement)
