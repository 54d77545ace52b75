-- +goose Up
-- The lotteries: the secret of each, who took part, and what came of it. Kept here so that a loss of Redis, or a process that
-- dies in the middle, cannot lead to a second draw. Hashes and the secret are in hex; what is not known yet is empty.

CREATE TABLE draws (
    sale_id    TEXT    NOT NULL PRIMARY KEY,
    secret     TEXT    NOT NULL,
    beacon     TEXT    NOT NULL,
    tickets    INTEGER NOT NULL,
    live       INTEGER NOT NULL,
    dropouts   BLOB    NOT NULL,
    root       TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    seed       TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
