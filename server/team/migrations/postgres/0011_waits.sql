-- The model that a run waits for, and until when, as long as its worker says so.
ALTER TABLE runs ADD COLUMN waits TEXT NOT NULL DEFAULT 'null';
