-- The key generation under which an attachment was sealed; photos have had this column from the start.

ALTER TABLE messages ADD COLUMN attachment_generation INTEGER;
UPDATE messages SET attachment_generation = 1 WHERE attachment_path IS NOT NULL;
CREATE INDEX messages_attached ON messages (attachment_generation, id) WHERE attachment_path IS NOT NULL;
