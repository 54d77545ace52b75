-- +goose Up
-- Identifiers are TEXT COLLATE "C": compared byte for byte. Times are milliseconds since the Unix epoch.

CREATE TABLE sales (
    id          TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(id) <= 64),
    settings    TEXT             NOT NULL,
    order_limit BIGINT           NOT NULL,
    created_at  BIGINT           NOT NULL,
    updated_at  BIGINT           NOT NULL
);

-- Room in each page lets the count of a hot item change in place, without touching the index.
CREATE TABLE items (
    sale_id TEXT COLLATE "C" NOT NULL CHECK (octet_length(sale_id) <= 64),
    item_id TEXT COLLATE "C" NOT NULL CHECK (octet_length(item_id) <= 64),
    total   BIGINT           NOT NULL,
    sold    BIGINT           NOT NULL DEFAULT 0,
    version BIGINT           NOT NULL DEFAULT 0,
    PRIMARY KEY (sale_id, item_id),
    CONSTRAINT items_sold CHECK (sold >= 0 AND sold <= total)
) WITH (fillfactor = 50);

CREATE TABLE orders (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(id) <= 64),
    sale_id    TEXT COLLATE "C" NOT NULL CHECK (octet_length(sale_id) <= 64),
    item_id    TEXT COLLATE "C" NOT NULL CHECK (octet_length(item_id) <= 64),
    user_id    TEXT COLLATE "C" NOT NULL CHECK (octet_length(user_id) <= 128),
    qty        BIGINT           NOT NULL,
    status     TEXT             NOT NULL,
    live       SMALLINT,
    request_id TEXT COLLATE "C" NOT NULL CHECK (octet_length(request_id) <= 128),
    reason     TEXT             NOT NULL DEFAULT '',
    created_at BIGINT           NOT NULL,
    expires_at BIGINT           NOT NULL DEFAULT 0,
    paid_at    BIGINT           NOT NULL DEFAULT 0,
    updated_at BIGINT           NOT NULL,
    CONSTRAINT orders_one_live UNIQUE (sale_id, user_id, live),
    CONSTRAINT orders_qty CHECK (qty > 0),
    CONSTRAINT orders_status CHECK (status IN ('confirmed', 'paid', 'cancelled', 'expired', 'rejected')),
    CONSTRAINT orders_live CHECK (live = 1),
    CONSTRAINT orders_live_status CHECK ((live IS NOT NULL) = (status IN ('confirmed', 'paid')))
);
CREATE INDEX orders_by_sale ON orders (sale_id, id);
CREATE INDEX orders_by_user ON orders (user_id, created_at);
CREATE INDEX orders_by_expiry ON orders (status, expires_at);

CREATE TABLE stock_moves (
    id         BIGINT           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    sale_id    TEXT COLLATE "C" NOT NULL,
    item_id    TEXT COLLATE "C" NOT NULL,
    order_id   TEXT COLLATE "C" NOT NULL,
    qty        BIGINT           NOT NULL,
    kind       TEXT             NOT NULL,
    done       SMALLINT         NOT NULL DEFAULT 0,
    created_at BIGINT           NOT NULL
);
CREATE INDEX stock_moves_pending ON stock_moves (done, id);
CREATE INDEX stock_moves_by_order ON stock_moves (order_id);

CREATE TABLE payments (
    event_id   TEXT COLLATE "C" NOT NULL PRIMARY KEY CHECK (octet_length(event_id) <= 128),
    order_id   TEXT COLLATE "C" NOT NULL,
    status     TEXT             NOT NULL,
    refund_due SMALLINT         NOT NULL DEFAULT 0,
    created_at BIGINT           NOT NULL
);
CREATE INDEX payments_by_order ON payments (order_id);
CREATE INDEX payments_refund_due ON payments (refund_due, created_at);

CREATE TABLE audit_log (
    id          BIGINT           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT           NOT NULL,
    who         TEXT             NOT NULL,
    action      TEXT             NOT NULL,
    sale_id     TEXT COLLATE "C" NOT NULL,
    before_json TEXT             NOT NULL,
    after_json  TEXT             NOT NULL
);
CREATE INDEX audit_log_by_sale ON audit_log (sale_id, id);
