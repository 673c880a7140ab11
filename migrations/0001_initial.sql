-- The first schema. A released migration never changes what comes out in the end: a later change is a new
-- migration. What a later one replaces whole, like the counts and most indexes of analyses, is left out here.
--
-- It is plain SQL, because models cannot express checks, partial indexes, ids that are never reused (a client
-- may still know a deleted one), and the full-text index.

CREATE TABLE photos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id TEXT NOT NULL,
    device_name TEXT NOT NULL,
    local_media_store_id TEXT NOT NULL,
    filename TEXT NOT NULL,
    original_path TEXT NOT NULL UNIQUE,
    thumbnail_path TEXT NOT NULL UNIQUE,
    file_size INTEGER NOT NULL,
    width INTEGER NOT NULL,
    height INTEGER NOT NULL,
    mime_type TEXT NOT NULL,
    source_type TEXT NOT NULL,
    original_timestamp TEXT NOT NULL,
    created_at TEXT NOT NULL,
    sha256 BLOB NOT NULL,
    file_key BLOB,
    thumbnail_key BLOB,
    key_generation INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX photos_once_per_device ON photos (device_id, local_media_store_id)
    WHERE local_media_store_id <> '';
CREATE INDEX photos_sha256 ON photos (sha256);
CREATE INDEX photos_created_at ON photos (created_at);

CREATE TABLE analyses (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    photo_id INTEGER NOT NULL UNIQUE REFERENCES photos (id) ON DELETE CASCADE,
    device_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'done', 'error')),
    app_name TEXT NOT NULL DEFAULT '',
    content_category TEXT NOT NULL DEFAULT '',
    intent TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL DEFAULT '',
    entities TEXT NOT NULL DEFAULT '[]',
    confidence REAL NOT NULL DEFAULT 0,
    visible_text TEXT NOT NULL DEFAULT '',
    llm_response TEXT NOT NULL DEFAULT '',
    error_message TEXT,
    created_at TEXT NOT NULL,
    completed_at TEXT,
    analyser TEXT NOT NULL DEFAULT '',
    attempts INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    returns INTEGER NOT NULL DEFAULT 0,
    due_at TEXT NOT NULL,
    lease_until TEXT,
    lease_token TEXT,
    fault TEXT NOT NULL DEFAULT '' CHECK (fault IN ('', 'provider', 'refused', 'row')),
    fresh INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX analyses_due ON analyses (due_at, photo_id) WHERE status = 'pending';
CREATE INDEX analyses_leased ON analyses (lease_until) WHERE status = 'processing';
CREATE INDEX analyses_faulty ON analyses (fault, photo_id) WHERE fault <> '';

CREATE VIRTUAL TABLE photo_index USING fts5(
    tokens, content='', contentless_delete=1, detail=full,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
CREATE TABLE vocabulary (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    term TEXT NOT NULL UNIQUE,
    documents INTEGER NOT NULL
) STRICT;

CREATE TABLE sync_states (
    device_id TEXT PRIMARY KEY,
    device_name TEXT NOT NULL,
    last_synced_timestamp TEXT,
    last_sync_time TEXT NOT NULL,
    total_synced INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    device_id TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX conversations_updated_at ON conversations (updated_at);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    content TEXT,
    tool_calls TEXT,
    tool_call_id TEXT,
    tool_name TEXT,
    attachment_path TEXT,
    attachment_key BLOB,
    attachment_type TEXT,
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX messages_conversation ON messages (conversation_id, id);

CREATE TABLE skills (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    icon TEXT NOT NULL DEFAULT '',
    system_prompt TEXT NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL
) STRICT;
CREATE TABLE mcp_servers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    enabled INTEGER NOT NULL DEFAULT 1,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE dynamics (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    summary TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    category TEXT NOT NULL CHECK (category IN ('insight', 'reminder', 'report', 'note')),
    confidence REAL NOT NULL DEFAULT 0,
    is_read INTEGER NOT NULL DEFAULT 0,
    is_pinned INTEGER NOT NULL DEFAULT 0,
    device_id TEXT NOT NULL DEFAULT '',
    source_photo_ids TEXT NOT NULL DEFAULT '[]',
    source_conversation_ids TEXT NOT NULL DEFAULT '[]',
    created_at TEXT NOT NULL
) STRICT;
CREATE INDEX dynamics_order ON dynamics (is_pinned, id);
CREATE INDEX dynamics_created_at ON dynamics (created_at);

CREATE TABLE memories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL,
    memory_type TEXT NOT NULL CHECK (memory_type IN ('short_term', 'long_term')),
    source_type TEXT NOT NULL DEFAULT '',
    category TEXT NOT NULL DEFAULT 'fact',
    importance REAL NOT NULL DEFAULT 0.5,
    access_count INTEGER NOT NULL DEFAULT 0,
    device_id TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    expires_at TEXT
) STRICT;
CREATE INDEX memories_expires_at ON memories (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE push_devices (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    device_id TEXT NOT NULL UNIQUE,
    token TEXT NOT NULL,
    platform TEXT NOT NULL DEFAULT 'android',
    device_name TEXT NOT NULL DEFAULT '',
    device_model TEXT NOT NULL DEFAULT '',
    app_version TEXT NOT NULL DEFAULT '',
    last_seen TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE spend_ledger (
    day TEXT NOT NULL,
    purpose TEXT NOT NULL,
    model TEXT NOT NULL,
    calls INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, purpose, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
