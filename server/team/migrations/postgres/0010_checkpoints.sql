-- What trainings came to, as archives among the objects of data files: of each checkpoint one by its step, and under step -1 what
-- all of them start from. There is one once its row is.
CREATE TABLE checkpoints (
    training TEXT NOT NULL REFERENCES trainings (id) ON DELETE CASCADE,
    step BIGINT NOT NULL,
    shown TEXT NOT NULL,
    object TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (training, step)
);

CREATE TRIGGER checkpoints_left AFTER DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION leave_object();
