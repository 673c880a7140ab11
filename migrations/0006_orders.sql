-- Indexes that give every list its order under any filter, and every count without reading rows.

-- These lists are ordered by time and id.
DROP INDEX conversations_updated_at;
DROP INDEX conversations_device;
CREATE INDEX conversations_updated_at ON conversations (updated_at, id);
CREATE INDEX conversations_device ON conversations (device_id, updated_at, id);
CREATE INDEX push_devices_last_seen ON push_devices (last_seen);

-- One index for each filter, in the order of the list. The further columns are filtered or counted, so that
-- no row is read for them.
CREATE INDEX dynamics_category ON dynamics (category, is_pinned, id, device_id, is_read);
CREATE INDEX dynamics_device ON dynamics (device_id, is_pinned, id);
CREATE INDEX memories_type ON memories (memory_type, id, device_id, expires_at);
CREATE INDEX memories_category ON memories (category, id, device_id, expires_at);
CREATE INDEX memories_kind ON memories (memory_type, category, id, device_id, expires_at);
CREATE INDEX memories_device ON memories (device_id, id, memory_type, category, expires_at);
