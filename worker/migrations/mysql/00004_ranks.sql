-- +goose Up
-- The priority with which each ticket joined a lobby that is put in order, a byte each; those beyond the end have none.

ALTER TABLE draws ADD COLUMN ranks LONGBLOB;
