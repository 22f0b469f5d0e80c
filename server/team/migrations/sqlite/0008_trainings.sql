-- A training is its own job, as a run is. Its folder, with the checkpoints, lies beside the database.
CREATE TABLE trainings (
    id TEXT PRIMARY KEY NOT NULL,
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (id),
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    study TEXT NOT NULL,
    files TEXT NOT NULL,
    settings TEXT NOT NULL,
    start TEXT NOT NULL,
    runs TEXT NOT NULL,
    all_weights BIGINT NOT NULL,
    run TEXT REFERENCES runs (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    stopping BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    process TEXT NOT NULL DEFAULT '',
    claims BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    reached BIGINT NOT NULL
);

CREATE INDEX trainings_of_project ON trainings (project, created_at, id);
CREATE INDEX trainings_of_run ON trainings (run);

CREATE TABLE training_lines (
    training TEXT NOT NULL REFERENCES trainings (id) ON DELETE CASCADE,
    line BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (training, line)
);
