INSERT INTO locks (name) VALUES ('consumption'), ('keys');

-- A text that the master key sealed, by which it is known again.
CREATE TABLE master (
    name TEXT PRIMARY KEY NOT NULL,
    sealed TEXT NOT NULL
);

CREATE TABLE keys (
    id TEXT PRIMARY KEY NOT NULL,
    record TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE limits (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    nano_usd BIGINT,
    requests BIGINT,
    PRIMARY KEY (scope, subject)
);

CREATE TABLE consumption (
    scope TEXT NOT NULL,
    subject TEXT NOT NULL,
    day BIGINT NOT NULL,
    used BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (scope, subject, day)
);

CREATE TABLE reservations (
    id TEXT PRIMARY KEY NOT NULL,
    key TEXT NOT NULL,
    project TEXT NOT NULL,
    member TEXT NOT NULL,
    day BIGINT NOT NULL,
    amount BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
