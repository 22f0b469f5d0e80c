-- Prompts for programs, by name.
CREATE TABLE prompts (
    id TEXT PRIMARY KEY NOT NULL,
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    newest BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    UNIQUE (project, name)
);

-- A run may be deleted: what it said of the prompt stays.
CREATE TABLE prompt_versions (
    prompt TEXT NOT NULL REFERENCES prompts (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    body TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    note TEXT,
    run TEXT,
    evidence TEXT,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (prompt, number)
);

CREATE TABLE labels (
    prompt TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (prompt, name),
    FOREIGN KEY (prompt, version) REFERENCES prompt_versions (prompt, number) ON DELETE CASCADE
);

CREATE TABLE label_moves (
    prompt TEXT NOT NULL REFERENCES prompts (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    number BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    from_version BIGINT,
    to_version BIGINT,
    PRIMARY KEY (prompt, label, number)
);
