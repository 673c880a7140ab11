-- The assistant: recalled memories of turns that wait to be read, indexes for conversations and files.

ALTER TABLE messages ADD COLUMN recalled TEXT;
CREATE INDEX messages_to_read ON messages (id) WHERE recalled IS NOT NULL;
CREATE INDEX conversations_device ON conversations (device_id, updated_at);

-- Clean-up looks up the message of each attached file.
CREATE INDEX messages_attachment ON messages (attachment_path) WHERE attachment_path IS NOT NULL;
