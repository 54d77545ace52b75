-- +goose Up
-- How far the line of each sale had got, as of a second ago: what its numbers are given anew from after a loss of Redis; and
-- whether an operator had paused it. A table of its own, because it changes every second while people join.

CREATE TABLE reach (
    sale_id TEXT    NOT NULL PRIMARY KEY,
    epoch   INTEGER NOT NULL,
    issued  INTEGER NOT NULL,
    served  INTEGER NOT NULL,
    calling INTEGER NOT NULL,
    paused  INTEGER NOT NULL
) STRICT;
