package queue

import (
	"errors"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Timeouts of the hot path: every script is short, so an answer that takes longer means trouble, and a shopper is told
// so while it is worth trying again.
const (
	dialTimeout = 2 * time.Second
	callTimeout = 500 * time.Millisecond

	// clusterReload is how old the map of a cluster may be. A node that died does not say who took over for it, and the
	// usual minute is too long for those who wait.
	clusterReload = time.Second
)

// blockingPool is how many reads may wait at once: one for each sale that this node relays.
const blockingPool = 1000

// errURL says how to write a Redis URL. The errors of the library may quote it, and with it a password.
var errURL = errors.New("--redis-url is not a Redis URL: write it like redis://:password@host:6379/0, " +
	"for a cluster redis://:password@one:6379?addr=two:6379&addr=three:6379, " +
	"for sentinels redis://:password@sentinel-1:26379/0?master_name=mymaster&addr=sentinel-2:26379, or rediss:// for TLS")

// Connect makes a client for a Redis URL: one server (redis://, rediss:// for TLS, unix://), a cluster, which has further
// nodes as addr, or one server that sentinels name, by its master_name. It does not dial. Of a cluster only masters are
// asked: a replica may be behind.
//
// The client never repeats a command by itself: a script whose answer was lost may have run, so repeats are made here, with
// the same ids. (That of a cluster goes where it is sent on to, and asks again when a node does not answer: it carries the same
// ids too, and every script bears a second run.)
func Connect(url string, pool int) (redis.UniversalClient, error) {
	return connect(url, pool, pool/2, callTimeout)
}

// ConnectBlocking makes the client for reads that wait: its connections are its own, made when they are needed.
func ConnectBlocking(url string) (redis.UniversalClient, error) {
	return connect(url, blockingPool, 0, callTimeout)
}

func connect(rawURL string, pool, idle int, answer time.Duration) (redis.UniversalClient, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errURL
	}
	all := redis.UniversalOptions{
		MaxRetries: -1, DialTimeout: dialTimeout, ReadTimeout: answer, WriteTimeout: answer, PoolSize: pool, MinIdleConns: idle,
		ContextTimeoutEnabled: true,
		FailingTimeoutSeconds: 1, // of a cluster's node that did not answer; who takes over for it is found sooner
		// A handshake of Redis Enterprise; elsewhere it costs every connection a refused command, and a line in the log.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch query := u.Query(); {
	case query.Has("master_name"):
		given, err := redis.ParseFailoverURL(rawURL)
		if err != nil {
			return nil, errURL
		}
		all.Addrs, all.MasterName, all.DB, all.TLSConfig = given.SentinelAddrs, given.MasterName, given.DB, given.TLSConfig
		all.Username, all.Password = given.Username, given.Password
		all.SentinelUsername, all.SentinelPassword = given.SentinelUsername, given.SentinelPassword
		return redis.NewFailoverClient(all.Failover()), nil
	case query.Has("addr"):
		given, err := redis.ParseClusterURL(rawURL)
		if err != nil {
			return nil, errURL
		}
		all.Addrs, all.TLSConfig, all.Username, all.Password = given.Addrs, given.TLSConfig, given.Username, given.Password
		many := all.Cluster()
		many.ClusterStateReloadInterval = clusterReload
		return redis.NewClusterClient(many), nil
	}
	given, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, errURL
	}
	one := all.Simple()
	one.Network, one.Addr, one.DB, one.TLSConfig = given.Network, given.Addr, given.DB, given.TLSConfig
	one.Username, one.Password = given.Username, given.Password
	return redis.NewClient(one), nil
}
