-- +goose Up
-- The sales that were taken out of Redis. From the moment that a row is here nothing brings its sale back; done_at is when Redis
-- was rid of it. report is the last audit, and version that of the settings which it judged. Users are replaced by names that a key
-- makes of them, order by order; purge_after is how far that is, and the key is kept only until it is done.

CREATE TABLE IF NOT EXISTS archives (
    sale_id     VARBINARY(64) NOT NULL PRIMARY KEY,
    begun_at    BIGINT        NOT NULL,
    done_at     BIGINT        NOT NULL DEFAULT 0,
    version     BIGINT        NOT NULL,
    report      MEDIUMTEXT    NOT NULL,
    purge_asked TINYINT       NOT NULL DEFAULT 0,
    purge_key   VARCHAR(64)   NOT NULL DEFAULT '',
    purge_after VARBINARY(64) NOT NULL DEFAULT '',
    purged_at   BIGINT        NOT NULL DEFAULT 0
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
