-- +goose Up
-- The priority with which each ticket joined a lobby that was put in order, a byte each; those beyond the end have none. A lobby
-- without priorities has no row. It is a table of its own because a column could not be added twice where a process died in
-- between.

CREATE TABLE IF NOT EXISTS draw_ranks (
    sale_id VARBINARY(64) NOT NULL PRIMARY KEY,
    ranks   LONGBLOB      NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
