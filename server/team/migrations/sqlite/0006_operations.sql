-- Servers and workers say now and then that they live. What one that is no more had set aside counts in full, and its runs
-- are anybody's.
CREATE TABLE processes (
    id TEXT PRIMARY KEY NOT NULL,
    heard_at BIGINT NOT NULL
);

ALTER TABLE reservations ADD COLUMN process TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN process TEXT NOT NULL DEFAULT '';

-- Who started a run that comes from another server, in words.
ALTER TABLE runs ADD COLUMN author TEXT;
