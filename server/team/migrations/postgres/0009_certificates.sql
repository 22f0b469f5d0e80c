-- What a run tested; NULL while only its journal knows.
ALTER TABLE runs ADD COLUMN certificates TEXT;

-- The audit log that a project brought along from another server, beneath this one's own: ids are at most 0.
CREATE TABLE imported_audit (
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    PRIMARY KEY (project, id)
);
