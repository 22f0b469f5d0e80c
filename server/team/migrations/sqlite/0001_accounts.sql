-- A transaction that must see all that others of its kind did updates the row of its kind first.
CREATE TABLE locks (
    name TEXT PRIMARY KEY NOT NULL
);

INSERT INTO locks (name) VALUES ('members');

CREATE TABLE members (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    password TEXT,
    is_admin BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    secret TEXT NOT NULL UNIQUE,
    member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    address TEXT NOT NULL,
    browser TEXT NOT NULL
);

CREATE INDEX sessions_of_member ON sessions (member);

CREATE TABLE tokens (
    id TEXT PRIMARY KEY NOT NULL,
    secret TEXT NOT NULL UNIQUE,
    member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    scope TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT,
    expires_at BIGINT NOT NULL
);

CREATE INDEX tokens_of_member ON tokens (member);

CREATE TABLE projects (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE roles (
    project TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
    member TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    PRIMARY KEY (project, member)
);

CREATE INDEX roles_of_member ON roles (member);

CREATE TABLE invitations (
    id TEXT PRIMARY KEY NOT NULL,
    secret TEXT NOT NULL UNIQUE,
    project TEXT REFERENCES projects (id) ON DELETE CASCADE,
    role TEXT,
    is_admin BIGINT NOT NULL,
    invited_by TEXT NOT NULL REFERENCES members (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE TABLE attempts (
    key TEXT PRIMARY KEY NOT NULL,
    attempts BIGINT NOT NULL,
    last_at BIGINT NOT NULL
);

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    project TEXT
);

CREATE INDEX audit_of_project ON audit (project, id);
