-- What data files hold lies elsewhere from now on; what is here moves there when a server starts.
ALTER TABLE files RENAME TO contents;

CREATE TABLE files (
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    size BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    object TEXT NOT NULL,
    PRIMARY KEY (project, sha256)
);

INSERT INTO files (project, sha256, size, created_at, touched_at, object)
SELECT project, sha256, size, created_at, created_at, project || '/' || sha256 FROM contents;

-- Objects that no file has, or not yet: deleted from a time on.
CREATE TABLE leftovers (
    object TEXT PRIMARY KEY NOT NULL,
    due_at BIGINT
);

CREATE TRIGGER files_left AFTER DELETE ON files BEGIN
    INSERT INTO leftovers (object) VALUES (OLD.object);
END;

-- The files that runs name.
CREATE TABLE run_files (
    run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (run, sha256),
    FOREIGN KEY (project, sha256) REFERENCES files (project, sha256)
);

CREATE INDEX run_files_of_file ON run_files (project, sha256);

INSERT INTO run_files (run, project, sha256)
SELECT DISTINCT runs.id, runs.project, files.sha256 FROM runs, json_each(runs.files) AS named
JOIN files ON files.project = runs.project AND files.sha256 = named.value;

CREATE TABLE data_sets (
    id TEXT PRIMARY KEY NOT NULL,
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    row_count BIGINT NOT NULL,
    column_names TEXT NOT NULL,
    first_rows TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (project, name),
    FOREIGN KEY (project, sha256) REFERENCES files (project, sha256)
);

CREATE INDEX data_sets_of_file ON data_sets (project, sha256);

-- The word is one of the routes' own from now on.
UPDATE projects SET name = 'import-' || substr(id, 1, 8) WHERE name = 'import';
