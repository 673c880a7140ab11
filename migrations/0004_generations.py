"""The key generation under which an attachment was sealed; photos have had this column from the start."""


def up(migrator, db):
    db.execute_sql("ALTER TABLE messages ADD COLUMN attachment_generation INTEGER")
    db.execute_sql("UPDATE messages SET attachment_generation = 1 WHERE attachment_path IS NOT NULL")
    db.execute_sql(
        "CREATE INDEX messages_attached ON messages (attachment_generation, id) "
        "WHERE attachment_path IS NOT NULL"
    )
