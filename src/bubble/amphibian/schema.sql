-- What a connector keeps: where it is on each thread, and what its agent keeps about it. Version 1.

CREATE TABLE checkpoints (
    server TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    through INTEGER NOT NULL,
    beyond TEXT NOT NULL DEFAULT '[]',  -- JSON: [[first, last], ...], settled above `through`
    PRIMARY KEY (server, principal_id, thread_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    server TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    session TEXT NOT NULL,  -- JSON: an object of the agent's
    PRIMARY KEY (server, principal_id, thread_id)
) STRICT, WITHOUT ROWID;
