-- What a Bubble file holds. `*_ms` are milliseconds since 1970, `metadata` and the narrowings of credentials are JSON.

-- Threads are known by a small number inside. AUTOINCREMENT never gives a number again, so what a deleted thread still
-- has in other tables can be erased slowly.
CREATE TABLE threads (
    thread_key INTEGER PRIMARY KEY AUTOINCREMENT,
    thread_id TEXT NOT NULL UNIQUE,
    title TEXT,
    metadata BLOB,
    join_policy TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    grant_version INTEGER NOT NULL,
    -- id and title in folded case, for the search of the list
    folded TEXT NOT NULL
) STRICT;

-- Every id that was ever deleted.
CREATE TABLE retired_threads (
    thread_id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Deleted threads whose rows are not all erased yet.
CREATE TABLE doomed_threads (
    thread_key INTEGER PRIMARY KEY
) STRICT;

-- The log. New rows always go to the table's end, whatever thread they belong to; the index gives them their order.
CREATE TABLE events (
    event_id INTEGER PRIMARY KEY,
    thread_key INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    text BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_seq ON events (thread_key, seq);

-- Where each thread stood when the activity was last settled; see activity.py.
CREATE TABLE activity (
    thread_key INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    head INTEGER NOT NULL,
    last_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX activity_by_time ON activity (last_ms DESC, thread_id);

-- `last_seq` and `last_ms` are settled later, like the activity.
CREATE TABLE runs (
    thread_key INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    kind TEXT,
    snapshot_seq INTEGER,
    started_seq INTEGER NOT NULL,
    started_ms INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    last_ms INTEGER NOT NULL,
    finished_seq INTEGER,
    finished_ms INTEGER,
    outcome TEXT,
    PRIMARY KEY (thread_key, run_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_by_seq ON runs (thread_key, started_seq);
CREATE INDEX open_runs ON runs (thread_key, started_seq) WHERE finished_seq IS NULL;

CREATE TABLE decisions (
    thread_key INTEGER NOT NULL,
    run_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    approved INTEGER NOT NULL,
    principal_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (thread_key, run_id, tool_call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
    thread_key INTEGER NOT NULL,
    caller TEXT NOT NULL,
    key TEXT NOT NULL,
    digest BLOB NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (thread_key, caller, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_ms);

CREATE TABLE grants (
    thread_key INTEGER NOT NULL,
    principal_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    role TEXT NOT NULL,
    appends INTEGER NOT NULL,
    granted_by TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    PRIMARY KEY (thread_key, principal_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_principal ON grants (principal_id, thread_id);

CREATE TABLE cursors (
    thread_key INTEGER NOT NULL,
    principal_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (thread_key, principal_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE principals (
    principal_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    display_name TEXT NOT NULL,
    deployment_role TEXT NOT NULL,
    owner_principal_id TEXT,
    metadata BLOB,
    created_ms INTEGER NOT NULL,
    disabled_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX principals_by_owner ON principals (owner_principal_id, principal_id)
    WHERE owner_principal_id IS NOT NULL;

CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    PRIMARY KEY (issuer, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE credentials (
    credential_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    secret_hash BLOB NOT NULL UNIQUE,
    principal_id TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER,
    parent_id TEXT,
    name TEXT,
    capabilities TEXT,
    threads TEXT,
    last_used_ms INTEGER,
    revoked_ms INTEGER,
    spent_ms INTEGER
) STRICT;
CREATE INDEX credentials_by_principal ON credentials (principal_id, kind, created_ms);
CREATE INDEX one_use_credentials ON credentials (kind) WHERE kind IN ('ticket', 'login');
CREATE INDEX credentials_by_parent ON credentials (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE presence (
    principal_id TEXT NOT NULL,
    node TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (principal_id, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX presence_by_node ON presence (node);

-- `settled`: the activity and the runs tell of every event up to this event_id.
CREATE TABLE marks (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO marks (name, value) VALUES ('settled', 0), ('pinged', 0);
