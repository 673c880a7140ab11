"""Every list in the order of an index, whatever it is filtered by, and counts from an index alone."""

INDEXES = (
    # The lists are in the order of the time and the id.
    "DROP INDEX conversations_updated_at",
    "DROP INDEX conversations_device",
    "CREATE INDEX conversations_updated_at ON conversations (updated_at, id)",
    "CREATE INDEX conversations_device ON conversations (device_id, updated_at, id)",
    "CREATE INDEX push_devices_last_seen ON push_devices (last_seen)",
    # The order of the list, for each filter; what else is filtered by or counted stands behind it, so that no
    # row is read for it.
    "CREATE INDEX dynamics_category ON dynamics (category, is_pinned, id, device_id, is_read)",
    "CREATE INDEX dynamics_device ON dynamics (device_id, is_pinned, id)",
    "CREATE INDEX memories_type ON memories (memory_type, id, device_id, expires_at)",
    "CREATE INDEX memories_category ON memories (category, id, device_id, expires_at)",
    "CREATE INDEX memories_kind ON memories (memory_type, category, id, device_id, expires_at)",
    "CREATE INDEX memories_device ON memories (device_id, id, memory_type, category, expires_at)",
)


def up(migrator, db):
    for statement in INDEXES:
        db.execute_sql(statement)
