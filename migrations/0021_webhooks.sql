-- Webhooks that programs have registered, and what is sent to them.

-- AUTOINCREMENT: the log of a webhook that is gone is not another one's.
CREATE TABLE webhooks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    secret TEXT NOT NULL,
    events TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    problem TEXT NOT NULL,
    failures INTEGER NOT NULL,
    failing_since TEXT,
    rests_until TEXT,
    dropped INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

-- Without any text: what is sent is read when it is sent.
CREATE TABLE deliveries (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    message_id TEXT NOT NULL,
    event TEXT NOT NULL,
    subject INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('waiting', 'delivered', 'failed', 'withdrawn')),
    attempts INTEGER NOT NULL,
    due_at TEXT NOT NULL,
    tried_at TEXT,
    answer INTEGER,
    problem TEXT NOT NULL,
    created_at TEXT NOT NULL
) STRICT;

CREATE INDEX deliveries_webhook ON deliveries (webhook_id, id);
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, due_at) WHERE status = 'waiting';
