-- Citations: what an answer of the assistant says, and the lines of screenshots that say it, as JSON.
--
-- Answers that were stored before have none.

ALTER TABLE messages ADD COLUMN citations TEXT;
