-- +goose Up
-- The lotteries: the secret of each, who took part, and what came of it. Kept here so that a loss of Redis, or a process that
-- dies in the middle, cannot lead to a second draw. Hashes and the secret are in hex; what is not known yet is empty.

CREATE TABLE IF NOT EXISTS draws (
    sale_id    VARBINARY(64) NOT NULL PRIMARY KEY,
    secret     VARCHAR(64)   NOT NULL,
    beacon     VARCHAR(255)  NOT NULL,
    tickets    BIGINT        NOT NULL,
    live       BIGINT        NOT NULL,
    dropouts   LONGBLOB      NOT NULL,
    root       VARCHAR(64)   NOT NULL,
    value      VARCHAR(255)  NOT NULL,
    seed       VARCHAR(64)   NOT NULL,
    updated_at BIGINT        NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
