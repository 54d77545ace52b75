-- +goose Up
-- How far the line of each sale had got, as of a second ago: what its numbers are given anew from after a loss of Redis; and
-- whether an operator had paused it. A table of its own, because it changes every second while people join.

CREATE TABLE reach (
    sale_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    epoch   BIGINT           NOT NULL,
    issued  BIGINT           NOT NULL,
    served  BIGINT           NOT NULL,
    calling BIGINT           NOT NULL,
    paused  SMALLINT         NOT NULL
) WITH (fillfactor = 50);
