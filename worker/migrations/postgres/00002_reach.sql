-- +goose Up
-- How far the line of a sale had got, as of a second ago: what its numbers are given anew from after a loss of Redis.
ALTER TABLE sales ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sales ADD COLUMN issued BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sales ADD COLUMN served BIGINT NOT NULL DEFAULT 0;
