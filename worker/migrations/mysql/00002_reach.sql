-- +goose Up
-- How far the line of each sale had got, as of a second ago: what its numbers are given anew from after a loss of Redis; and
-- whether an operator had paused it. A table of its own, because it changes every second while people join.

CREATE TABLE IF NOT EXISTS reach (
    sale_id VARBINARY(64) NOT NULL PRIMARY KEY,
    epoch   BIGINT        NOT NULL,
    issued  BIGINT        NOT NULL,
    served  BIGINT        NOT NULL,
    calling BIGINT        NOT NULL,
    paused  TINYINT       NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
