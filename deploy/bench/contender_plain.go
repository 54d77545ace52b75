package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	_ "github.com/go-sql-driver/mysql" // the database driver
	"github.com/redis/go-redis/v9"
)

// The plain design, as tutorials about flash sales teach it: Gin, an HMAC over the user, one EVAL that counts requests,
// one that takes stock, a channel, and 20 goroutines that insert a row each. Two of its known faults are mended here,
// because they would change what is measured: users are marked one by one, and the mark never runs out.

// plainLimit counts the requests of a window. KEYS: counter. ARGV: most, seconds. Returns 1 = go on.
const plainLimit = `
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
if n > tonumber(ARGV[1]) then return 0 end
return 1`

// plainTake takes one unit. KEYS: stock, buyers. ARGV: user. Returns 1, or -1 = has one, -2 = sold out.
const plainTake = `
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return -1 end
if tonumber(redis.call('GET', KEYS[1]) or '0') < 1 then return -2 end
redis.call('DECR', KEYS[1])
redis.call('SADD', KEYS[2], ARGV[1])
return 1`

const (
	plainWriters = 20
	plainPool    = 200
)

type plain struct {
	rdb    *redis.Client
	secret []byte
	orders chan string
}

func newPlain(ctx context.Context, c *contendCmd) (http.Handler, error) {
	options, err := redis.ParseURL(c.Redis)
	if err != nil {
		return nil, err
	}
	options.PoolSize, options.MinIdleConns = plainPool, plainPool/4
	db, err := sql.Open("mysql", c.Database)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(plainWriters)
	db.SetMaxIdleConns(plainWriters)
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS plain_orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, sale VARCHAR(64) NOT NULL, user_id VARCHAR(128) NOT NULL, created_at DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE KEY one_each (sale, user_id))"); err != nil {
		return nil, err
	}
	p := &plain{rdb: redis.NewClient(options), secret: []byte(c.Secret), orders: make(chan string, 2*c.Stock)}
	if err := p.rdb.Set(ctx, "plain:{s}:stock", c.Stock, 0).Err(); err != nil {
		return nil, err
	}
	for range plainWriters {
		go func() {
			for user := range p.orders {
				if _, err := db.ExecContext(ctx, "INSERT INTO plain_orders (sale, user_id) VALUES (?, ?)", "s", user); err != nil {
					slog.Error("insert", "error", err)
				}
			}
		}()
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(gin.Recovery(), p.identify)
	engine.POST("/api/v1/seckill/:sale", p.grab)
	return engine, nil
}

func (p *plain) identify(c *gin.Context) {
	user := c.GetHeader("X-User-Id")
	if !signed(p.secret, user, c.GetHeader("X-Token")) {
		c.AbortWithStatusJSON(http.StatusUnauthorized, gin.H{"code": 401, "msg": "who are you?"})
		return
	}
	c.Set("user", user)
}

// signed says whether a token is the HMAC pair of that user.
func signed(secret []byte, user, token string) bool {
	expiry, signature, _ := strings.Cut(token, ".")
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(user + "." + expiry))
	sum, err := hex.DecodeString(signature)
	until, _ := strconv.ParseInt(expiry, 10, 64)
	return err == nil && hmac.Equal(sum, mac.Sum(nil)) && time.Now().Unix() < until
}

func (p *plain) grab(c *gin.Context) {
	ctx, user := c.Request.Context(), c.GetString("user")
	window := strconv.FormatInt(time.Now().Unix(), 10)
	pass, err := p.rdb.Eval(ctx, plainLimit, []string{"plain:{s}:limit:" + window}, 1<<30, 2).Int()
	if err == nil && pass == 0 {
		c.JSON(http.StatusTooManyRequests, gin.H{"code": 429, "msg": "busy"})
		return
	}
	var code int
	if err == nil {
		code, err = p.rdb.Eval(ctx, plainTake, []string{"plain:{s}:stock", "plain:{s}:buyers"}, user).Int()
	}
	switch {
	case err != nil:
		c.JSON(http.StatusOK, gin.H{"code": 500, "msg": "busy"})
	case code == 1:
		p.orders <- user
		c.JSON(http.StatusOK, gin.H{"code": 0, "msg": "success"})
	case code == -1:
		c.JSON(http.StatusOK, gin.H{"code": -1, "msg": "you have one"})
	default:
		c.JSON(http.StatusOK, gin.H{"code": -2, "msg": "sold out"})
	}
}
