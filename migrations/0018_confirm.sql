-- Calls of tools that wait for the person's word, with the turns that they interrupt; and which MCP servers
-- the person trusts.

ALTER TABLE mcp_servers ADD COLUMN trusted INTEGER NOT NULL DEFAULT 0;

-- What followed a user message until its turn had to wait, as JSON.
CREATE TABLE paused_turns (
    message_id INTEGER NOT NULL PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    state TEXT NOT NULL
) STRICT;

-- The rows stay when the turn is over: a second answer to a call is told from one to an unknown call, and
-- what was allowed for a conversation stays allowed.
CREATE TABLE asked_calls (
    id TEXT NOT NULL PRIMARY KEY,
    message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    tool TEXT NOT NULL,
    server TEXT NOT NULL,
    server_id TEXT,
    arguments TEXT NOT NULL,
    sensitive TEXT NOT NULL,
    decision TEXT CHECK (decision IN ('allowed', 'refused', 'expired')),
    for_conversation INTEGER NOT NULL DEFAULT 0,
    result TEXT,
    asked_at TEXT NOT NULL
) STRICT;

CREATE INDEX asked_calls_message ON asked_calls (message_id);
