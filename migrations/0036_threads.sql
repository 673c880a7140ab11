-- Threads: records of several screenshots that are about one order, parcel, trip, booking or bill.
--
-- All of it but `threads_apart` is derived from the records, which the background makes anew after an update.

CREATE TABLE threads (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    photos INTEGER NOT NULL,
    first_at TEXT NOT NULL,
    last_at TEXT NOT NULL,
    ends_at TEXT NOT NULL,
    said_photo_id INTEGER NOT NULL,
    said_line INTEGER
) STRICT;

CREATE INDEX threads_last ON threads (last_at, id);
CREATE INDEX threads_ends ON threads (ends_at) WHERE ends_at != '';
CREATE INDEX threads_type_last ON threads (type, last_at, id);

CREATE TABLE thread_traces (
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    thread_id INTEGER REFERENCES threads (id) ON DELETE SET NULL,
    taken_at TEXT NOT NULL,
    trace TEXT NOT NULL,
    amount TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (photo_id, place)
) STRICT;

CREATE INDEX thread_traces_thread ON thread_traces (thread_id);
CREATE INDEX thread_traces_amount ON thread_traces (amount, day) WHERE amount != '';

CREATE TABLE thread_keys (
    key TEXT NOT NULL,
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    place INTEGER NOT NULL,
    PRIMARY KEY (key, photo_id, place)
) STRICT;

CREATE INDEX thread_keys_photo ON thread_keys (photo_id);

-- What a person has taken out of a thread stays apart from these photos.
CREATE TABLE threads_apart (
    photo_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    other_id INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    PRIMARY KEY (photo_id, other_id)
) STRICT;

CREATE INDEX threads_apart_other ON threads_apart (other_id);
