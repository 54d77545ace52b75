-- +goose Up
-- How far the line of a sale had got, as of a second ago: what its numbers are given anew from after a loss of Redis.
ALTER TABLE sales
    ADD COLUMN IF NOT EXISTS epoch  BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS issued BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN IF NOT EXISTS served BIGINT NOT NULL DEFAULT 0;
