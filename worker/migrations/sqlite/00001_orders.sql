-- +goose Up
-- TEXT is compared byte for byte. Times are milliseconds since the Unix epoch.

CREATE TABLE sales (
    id          TEXT    NOT NULL PRIMARY KEY CHECK (octet_length(id) <= 64),
    settings    TEXT    NOT NULL,
    order_limit INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE items (
    sale_id TEXT    NOT NULL CHECK (octet_length(sale_id) <= 64),
    item_id TEXT    NOT NULL CHECK (octet_length(item_id) <= 64),
    total   INTEGER NOT NULL,
    sold    INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (sale_id, item_id),
    CONSTRAINT items_sold CHECK (sold >= 0 AND sold <= total)
) STRICT;

CREATE TABLE orders (
    id         TEXT    NOT NULL PRIMARY KEY CHECK (octet_length(id) <= 64),
    sale_id    TEXT    NOT NULL CHECK (octet_length(sale_id) <= 64),
    item_id    TEXT    NOT NULL CHECK (octet_length(item_id) <= 64),
    user_id    TEXT    NOT NULL CHECK (octet_length(user_id) <= 128),
    qty        INTEGER NOT NULL,
    status     TEXT    NOT NULL,
    live       INTEGER,
    request_id TEXT    NOT NULL CHECK (octet_length(request_id) <= 128),
    reason     TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL DEFAULT 0,
    paid_at    INTEGER NOT NULL DEFAULT 0,
    updated_at INTEGER NOT NULL,
    CONSTRAINT orders_one_live UNIQUE (sale_id, user_id, live),
    CONSTRAINT orders_qty CHECK (qty > 0),
    CONSTRAINT orders_status CHECK (status IN ('confirmed', 'paid', 'cancelled', 'expired', 'rejected')),
    CONSTRAINT orders_live CHECK (live = 1),
    CONSTRAINT orders_live_status CHECK ((live IS NOT NULL) = (status IN ('confirmed', 'paid')))
) STRICT;
CREATE INDEX orders_by_sale ON orders (sale_id, id);
CREATE INDEX orders_by_user ON orders (user_id, created_at);
CREATE INDEX orders_by_expiry ON orders (status, expires_at);

CREATE TABLE stock_moves (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    sale_id    TEXT    NOT NULL,
    item_id    TEXT    NOT NULL,
    order_id   TEXT    NOT NULL,
    qty        INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    done       INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX stock_moves_pending ON stock_moves (done, id);
CREATE INDEX stock_moves_by_order ON stock_moves (order_id);

CREATE TABLE payments (
    event_id   TEXT    NOT NULL PRIMARY KEY CHECK (octet_length(event_id) <= 128),
    order_id   TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    refund_due INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX payments_by_order ON payments (order_id);
CREATE INDEX payments_refund_due ON payments (refund_due, created_at);

CREATE TABLE audit_log (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    who         TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    sale_id     TEXT    NOT NULL,
    before_json TEXT    NOT NULL,
    after_json  TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_log_by_sale ON audit_log (sale_id, id);
