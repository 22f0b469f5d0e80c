-- Checkpoints of trainings, each an archive of its policy among the objects of data files, which is there once its row is.
CREATE TABLE checkpoints (
    training TEXT NOT NULL REFERENCES trainings (id) ON DELETE CASCADE,
    step BIGINT NOT NULL,
    shown TEXT NOT NULL,
    object TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (training, step)
);

CREATE TRIGGER checkpoints_left AFTER DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION leave_object();
