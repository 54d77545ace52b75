-- +goose Up
-- MySQL commits after every statement that defines a table, so each of them must bear a second run.
-- Identifiers are VARBINARY: compared byte for byte, with no padding. Times are milliseconds since the Unix epoch.

CREATE TABLE IF NOT EXISTS sales (
    id          VARBINARY(64) NOT NULL PRIMARY KEY,
    settings    MEDIUMTEXT    NOT NULL,
    order_limit BIGINT        NOT NULL,
    created_at  BIGINT        NOT NULL,
    updated_at  BIGINT        NOT NULL
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS items (
    sale_id VARBINARY(64) NOT NULL,
    item_id VARBINARY(64) NOT NULL,
    total   BIGINT        NOT NULL,
    sold    BIGINT        NOT NULL DEFAULT 0,
    version BIGINT        NOT NULL DEFAULT 0,
    PRIMARY KEY (sale_id, item_id),
    CONSTRAINT items_sold CHECK (sold >= 0 AND sold <= total)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- No foreign key leads from orders to items: the insert would lock the item's row shared, and two writers that then
-- raise its count would always deadlock. The count itself is what fails for an item that does not exist.
CREATE TABLE IF NOT EXISTS orders (
    id         VARBINARY(64)  NOT NULL PRIMARY KEY,
    sale_id    VARBINARY(64)  NOT NULL,
    item_id    VARBINARY(64)  NOT NULL,
    user_id    VARBINARY(128) NOT NULL,
    qty        BIGINT         NOT NULL,
    status     VARCHAR(16)    NOT NULL,
    live       TINYINT,
    request_id VARBINARY(128) NOT NULL,
    reason     VARCHAR(64)    NOT NULL DEFAULT '',
    created_at BIGINT         NOT NULL,
    expires_at BIGINT         NOT NULL DEFAULT 0,
    paid_at    BIGINT         NOT NULL DEFAULT 0,
    updated_at BIGINT         NOT NULL,
    UNIQUE KEY orders_one_live (sale_id, user_id, live),
    KEY orders_by_sale (sale_id, id),
    KEY orders_by_user (user_id, created_at),
    KEY orders_by_expiry (status, expires_at),
    CONSTRAINT orders_qty CHECK (qty > 0),
    CONSTRAINT orders_status CHECK (status IN ('confirmed', 'paid', 'cancelled', 'expired', 'rejected')),
    CONSTRAINT orders_live CHECK (live = 1),
    CONSTRAINT orders_live_status CHECK ((live IS NOT NULL) = (status IN ('confirmed', 'paid')))
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS stock_moves (
    id         BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    sale_id    VARBINARY(64) NOT NULL,
    item_id    VARBINARY(64) NOT NULL,
    order_id   VARBINARY(64) NOT NULL,
    qty        BIGINT        NOT NULL,
    kind       VARCHAR(16)   NOT NULL,
    done       TINYINT       NOT NULL DEFAULT 0,
    created_at BIGINT        NOT NULL,
    KEY stock_moves_pending (done, id),
    KEY stock_moves_by_order (order_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS payments (
    event_id   VARBINARY(128) NOT NULL PRIMARY KEY,
    order_id   VARBINARY(64)  NOT NULL,
    status     VARCHAR(32)    NOT NULL,
    refund_due TINYINT        NOT NULL DEFAULT 0,
    created_at BIGINT         NOT NULL,
    KEY payments_by_order (order_id),
    KEY payments_refund_due (refund_due, created_at)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

CREATE TABLE IF NOT EXISTS audit_log (
    id          BIGINT        NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at          BIGINT        NOT NULL,
    who         VARCHAR(255)  NOT NULL,
    action      VARCHAR(64)   NOT NULL,
    sale_id     VARBINARY(64) NOT NULL,
    before_json MEDIUMTEXT    NOT NULL,
    after_json  MEDIUMTEXT    NOT NULL,
    KEY audit_log_by_sale (sale_id, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;
