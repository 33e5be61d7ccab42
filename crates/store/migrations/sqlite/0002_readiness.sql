-- One row that is written anew to see whether the disk takes a commit as large as the largest event.
CREATE TABLE readiness (
    one  BIGINT NOT NULL PRIMARY KEY,
    room BLOB   NOT NULL
);
