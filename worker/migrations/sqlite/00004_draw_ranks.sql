-- +goose Up
-- The priority with which each ticket joined a lobby that was put in order, a byte each; those beyond the end have none. A lobby
-- without priorities has no row. It is a table of its own because a column could not be added twice where a process died in
-- between.

CREATE TABLE draw_ranks (
    sale_id TEXT NOT NULL PRIMARY KEY,
    ranks   BLOB NOT NULL
) STRICT;
