-- Notes about threads: the states of a thread that a note has told of, with blanks between.
--
-- What is there when the service is updated is told already.

ALTER TABLE threads ADD COLUMN told TEXT NOT NULL DEFAULT '';
UPDATE threads SET told = state;
