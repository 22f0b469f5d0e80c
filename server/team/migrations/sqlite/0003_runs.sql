INSERT INTO locks (name) VALUES ('runs');

-- Data files of studies, known by what they hold.
CREATE TABLE files (
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (project, sha256)
);

-- A run is its own job: who has its lease works on it, and writes nothing once the fence has risen.
CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (id),
    name TEXT NOT NULL,
    origin TEXT NOT NULL,
    study TEXT NOT NULL,
    files TEXT NOT NULL,
    method TEXT NOT NULL,
    objective TEXT NOT NULL,
    stage TEXT NOT NULL,
    wish TEXT,
    status TEXT,
    error TEXT,
    created_at BIGINT NOT NULL,
    start_at BIGINT,
    touched_at BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    steered BIGINT NOT NULL,
    claims BIGINT NOT NULL,
    progress TEXT NOT NULL,
    times TEXT NOT NULL
);

CREATE INDEX runs_of_project ON runs (project, created_at, id);
CREATE INDEX runs_at_stage ON runs (stage, created_at);

CREATE TABLE lines (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    line BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, line)
);

-- Changes by hand that no round has taken up yet.
CREATE TABLE steers (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    change TEXT NOT NULL,
    PRIMARY KEY (run, number)
);
