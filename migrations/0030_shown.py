"""What is shown of a photo: a person's own words where there are some, else those of the analysis; and
whether any of it is withheld from those who must not learn what is sensitive.

A view, so it stores nothing.
"""

VIEW = """
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
"""


def up(migrator, db):
    db.execute_sql(VIEW)
