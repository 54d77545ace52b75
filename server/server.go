// Package server is the HTTP side of sluice: who is asking, what may be asked, and how answers and failures read. It
// decides nothing about seats or stock: package queue does.
//
// A request passes observe (request id, recovery, log), then the node's own limit, then its handler, one file each.
// Handlers return errors; problem.go alone turns them into answers.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/labstack/echo/v5"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/text/language"

	"sluice/hub"
	"sluice/queue"
	"sluice/trace"
)

// Orders is where the rows of orders are read. worker.Store is one.
type Orders interface {
	// Order returns one order, or a *queue.Error NoSuchOrder.
	Order(ctx context.Context, id string) (queue.Order, error)
	// OrdersOf returns a user's orders in a sale, or in all when sale is "", the newest first.
	OrdersOf(ctx context.Context, user, sale string) ([]queue.Order, error)
	// FindOrders returns the orders of a sale that a filter lets through, the newest first by id.
	FindOrders(ctx context.Context, filter queue.OrderFilter) ([]queue.Order, error)
}

// Cashier takes payments and cancellations of orders that have a row. worker.Cashier is one. Errors of all: NoSuchOrder,
// and Conflict with the order as it is when it does not allow that.
type Cashier interface {
	// Pay takes the demonstration payment.
	Pay(ctx context.Context, order string) (queue.Order, error)
	Cancel(ctx context.Context, order string) (queue.Order, error)
	// Payment records an event of a payment provider; Invalid for an unknown status.
	Payment(ctx context.Context, event, order, status string) (queue.Order, error)
}

// SaleStore is where sales outlive Redis. worker.Store is one.
type SaleStore interface {
	SaveSale(ctx context.Context, sale queue.Sale) error
	// Sales returns those that are not archived, and Archives what is kept of the others; Archive is nil for one that is not.
	Sales(ctx context.Context) ([]queue.Sale, error)
	Archives(ctx context.Context) ([]queue.Archive, error)
	Archive(ctx context.Context, id string) (*queue.Archive, error)
	// Sale returns one sale, archived or not, or a *queue.Error NoSuchSale.
	Sale(ctx context.Context, id string) (queue.Sale, error)
	// Reach is how far the line of a sale had got, zero for a sale that is not there.
	Reach(ctx context.Context, id string) (queue.Reach, error)
	// EachOrder calls fn with all orders of a sale, at most page at a time.
	EachOrder(ctx context.Context, sale string, page int, fn func([]queue.Order) error) error
	// Sold returns how many units of each item of a sale are sold, as the database counts.
	Sold(ctx context.Context, id string) (map[string]int64, error)
}

// Snapshots is the newest that this node knows of each sale. It never blocks.
type Snapshots interface {
	// Snapshot returns nil for a sale which is unknown, or not read yet.
	Snapshot(sale string) *queue.Snapshot
	All() []*queue.Snapshot
	// Kick makes the next snapshot of a sale come soon.
	Kick(sale string)
}

// Auditor compares the stores of a sale; what it returns is written as JSON. It reads every order of the sale.
type Auditor interface {
	Audit(ctx context.Context, sale string) (any, error)
}

// Archivist takes a sale that is over out of Redis, and with purge the users out of its orders. worker.Archivist is one.
// Errors: Conflict when something of it is not over.
type Archivist interface {
	Archive(ctx context.Context, sale string, purge bool) error
}

// line is what the handlers need of a *queue.Queue.
type line interface {
	Join(ctx context.Context, req queue.JoinRequest) (queue.Seat, error)
	JoinLater(req queue.JoinRequest, within time.Duration, then func(queue.Seat, error))
	Look(ctx context.Context, sale, user string) (queue.Seat, error)
	LookMany(ctx context.Context, sale string, users []string) ([]queue.Seat, error)
	Leave(ctx context.Context, sale, user string, ticket int64) error
	Tell(ctx context.Context, sale string, seats []queue.Presence) error
	Lease(ctx context.Context, name, holder string, lasts time.Duration) (bool, error)
	Freeze(ctx context.Context, draw queue.Draw) (queue.Draw, bool, error)
	Entries(ctx context.Context, draw *queue.Draw, fn func([]queue.DrawEntry) error) error
	Draw(ctx context.Context, draw queue.Draw, table []byte) error
	Reclaim(ctx context.Context, sale string, served int64, seats []queue.Seat) error
	Grab(ctx context.Context, req queue.GrabRequest) (queue.Grabbed, error)
	Allow(ctx context.Context, user, address string) (*queue.Allowance, error)

	Sale(ctx context.Context, id string) (queue.Sale, error)
	Installed(ctx context.Context, id string) (here, ready bool, err error)
	Apply(ctx context.Context, sale queue.Sale) error
	Open(ctx context.Context, id string) (queue.Sale, error)
	Pause(ctx context.Context, id string) (queue.Sale, error)
	Resume(ctx context.Context, id string) (queue.Sale, error)
	Close(ctx context.Context, id string) (queue.Sale, error)
	Recover(ctx context.Context, id string) error
	Restore(ctx context.Context, sale queue.Sale, reach queue.Reach, orders func(yield func([]queue.Order) error) error) error
	Check(ctx context.Context, sale queue.Sale) error

	OutboxLen(ctx context.Context, sale string) (int64, error)
	LastAudit(ctx context.Context, sale string) (*queue.AuditSummary, error)
	ReportNode(ctx context.Context, report queue.NodeReport) error
	ForgetNode(ctx context.Context, node string) error
	Nodes(ctx context.Context) ([]queue.NodeReport, error)
}

// Options are the settings of a Server.
type Options struct {
	Node      string // names this node to shoppers, operators and in logs; "" = other nodes are not told of this one
	Version   string // of the program, for operators
	Queue     *queue.Queue
	Hub       *hub.Hub
	Orders    Orders
	Sales     SaleStore
	Cashier   Cashier   // nil = orders cannot be paid or cancelled here
	Snapshots Snapshots // nil = those of the rooms that Run keeps
	Auditor   Auditor   // nil = the audit is answered with 503
	Archivist Archivist // nil = sales cannot be archived here
	Draws     Draws     // nil = sales with a lottery are refused
	AuditLog  AuditLog  // nil = changes are in the log only
	Broker    Broker    // nil = its counts are not known

	// AwaitRow, where it is set, is called after a grab took stock and before anybody is told: with a Redis that does
	// not outlive the process, an order is one only once its row is committed.
	AwaitRow func(ctx context.Context, order queue.Order) error

	// Forget stores an order that is nowhere as rejected, for good, and returns it as it is stored then. nil = nothing is
	// ever called forgotten.
	Forget func(ctx context.Context, order queue.Order) (queue.Order, error)

	Settings // to begin with; Prepare makes ready to change them

	PassIssuer     string        // `iss` of passes; "" = "sluice"
	Auth           []string      // how people may say who they are; see IdentityOptions
	Keys           *Keyring      // of an identity provider; nil = there is none. Run keeps it up to date
	Issuer         string        // that users' tokens must be of; "" = any
	Audiences      []string      // of which users' tokens must be for one; none = any
	Leeway         time.Duration // how far the clock of whoever signs tokens may be off
	Origins        []string      // pages of other origins that may call the API, as scheme://host[:port]
	TrustedProxies []string      // addresses or ranges whose X-Forwarded-For is believed; none = the peer's own address
	Secure         bool          // shoppers and operators come by HTTPS to this very process, so that browsers may be told to always do
	AdminApart     bool          // operators have a listener of their own; see Operators

	BrokerUI string // URL of the broker's own pages, for operators; "" = none

	Web   http.Handler                    // the pages; nil = none
	Ready func(ctx context.Context) error // what /readyz asks; nil = always ready

	// Away asks all that this node stands on whether it is there, and says in a sentence each what is not, where, and what to do.
	// Operators are told when something of theirs failed. nil = they are told what shoppers are.
	Away func(ctx context.Context) []string

	Logger     *slog.Logger
	Tracer     *trace.Tracer         // nil = nothing is followed
	Registerer prometheus.Registerer // nil = nothing is registered
	Gatherer   prometheus.Gatherer   // what /metrics shows; nil = nothing
	Now        func() time.Time      // nil = time.Now
}

// Server answers HTTP. It is safe for concurrent use.
type Server struct {
	opts       Options
	line       line
	registry   *registry
	set        atomic.Pointer[inForce]
	passes     *passes
	verdicts   *verdicts
	newOrderID func(sale, user string) (string, error)
	counted    *metrics
	catalog    *catalog
	languages  language.Matcher
	requests   requestIDs
	refusals   map[soldOut][]byte
	failures   *throttle
	log        *slog.Logger
	now        func() time.Time
	echo       *echo.Echo
	address    echo.IPExtractor
	origins    origins
	attempts   *attempts
	upgrader   *websocket.Upgrader
	verifier   *verifier
	notReady   atomic.Bool
	drawer     drawer
	drawings   drawings
	leaseName  string     // of this process, where only one node is to do something
	changing   sync.Mutex // one change of a sale at a time; see change.go
	started    time.Time
	broker     *brokerCounts
	streams    *streams
}

// New makes a Server. It starts nothing and opens nothing: see [Server.Run].
func New(opts Options) (*Server, error) {
	if opts.Queue == nil {
		return nil, errors.New("server: a queue is needed")
	}
	return newServer(opts, opts.Queue)
}

func newServer(opts Options, line line) (*Server, error) {
	if opts.Orders == nil || opts.Sales == nil {
		return nil, errors.New("server: a store of orders and one of sales are needed")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	passes, err := newPasses(opts.Secrets, opts.PassIssuer, opts.Now)
	if err != nil {
		return nil, err
	}
	trusted, err := parseProxies(opts.TrustedProxies)
	if err != nil {
		return nil, err
	}
	allowed, err := parseOrigins(opts.Origins)
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts:      opts,
		line:      line,
		passes:    passes,
		counted:   newMetrics(opts.Registerer),
		catalog:   newCatalog(opts.Sales, opts.Now),
		languages: newLanguages(),
		requests:  newRequestIDs(),
		refusals:  newRefusals(),
		origins:   allowed,
		attempts:  newAttempts(),
		failures:  newThrottle(failureLogRate, failureLogBurst),
		log:       opts.Logger,
		now:       opts.Now,
		upgrader:  newUpgrader(),
		verifier:  newVerifier(),
		leaseName: uuid.NewString(),
		started:   opts.Now(),
		broker:    &brokerCounts{broker: opts.Broker},
		streams:   newStreams(),
	}
	change, err := s.Prepare(opts.Settings)
	if err != nil {
		return nil, err
	}
	change()
	s.opts.Settings = Settings{} // those in force are in current
	s.newOrderID = func(sale, user string) (string, error) { return s.current().identities.newOrderID(sale, user) }
	s.verdicts = newVerdicts(s.stands, opts.Now)
	s.drawer = drawer{server: s, busy: map[string]bool{}}
	s.drawings = drawings{server: s, draws: map[string]keptDraw{}, trees: map[string]*queue.MerkleTree{}}
	s.registry = newRegistry(s)
	if s.opts.Snapshots == nil {
		s.opts.Snapshots = s.registry
	}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(newCollector(s.opts.Snapshots, s.registry.leaseAge))
	}
	s.address = addressFrom(trusted)
	s.echo = s.newEcho()
	s.routes()
	return s, nil
}

// Run keeps a room for every sale, and with it the newest of that sale, tells the other nodes of this one, and reads the keys of
// the identity provider, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	var reporter sync.WaitGroup
	reporter.Go(func() { s.reportNode(ctx) })
	reporter.Go(func() { s.current().identities.run(ctx) })
	s.registry.run(ctx)
	s.streams.allow(false)
	reporter.Wait()
}

// Handler answers shoppers, and operators unless these are apart.
func (s *Server) Handler() http.Handler { return s.echo }

// Identities is what verifies the tokens of this server.
func (s *Server) Identities() *Identities { return s.current().identities }

// newEcho makes a router, without routes.
func (s *Server) newEcho() *echo.Echo {
	e := echo.New()
	e.Logger = s.log
	e.IPExtractor = s.address
	e.HTTPErrorHandler = s.fail
	return e
}

func (s *Server) routes() {
	s.echo.Pre(s.observe, s.admit, shortTarget, s.pages)
	if len(s.opts.Origins) > 0 {
		s.echo.Use(s.crossOrigin())
	}

	// Middleware stands at each route: a group's own answers 404 where a path exists and only the method is wrong.
	api := s.echo.Group("/api/v1")
	api.GET("/sales", s.listSales, s.limit)
	api.GET("/sales/:sale", s.showSale, s.limit)
	api.POST("/guests", s.makeGuest, s.limit, s.limitAddress)
	api.POST("/sales/:sale/seat", s.joinSeat, s.limit)
	api.GET("/sales/:sale/seat", s.showSeat, s.limit)
	api.DELETE("/sales/:sale/seat", s.leaveSeat, s.limit)
	api.GET("/sales/:sale/draw", s.showDraw, s.limit)
	api.GET("/sales/:sale/draw/entrants", s.listEntrants, s.limit, s.limitAddress)
	api.GET("/sales/:sale/draw/priorities", s.listPriorities, s.limit)
	api.GET("/sales/:sale/draw/mine", s.showEntry, s.limit)
	api.POST("/sales/:sale/pass", s.renewPass, s.limit)
	api.GET("/auth", s.authorize, s.limit)
	api.POST("/sales/:sale/grab", s.postGrab, s.limit)
	api.POST("/seckill/:sale", s.postGrab, s.limit)
	api.GET("/orders", s.listOrders, s.limit)
	api.GET("/orders/:order", s.showOrder, s.limit)
	api.POST("/orders/:order/pay", s.payOrder, s.limit)
	api.POST("/orders/:order/cancel", s.cancelOrder, s.limit)
	api.POST("/webhooks/payment", s.paymentEvent)

	s.echo.GET("/ws/v1/sales/:sale", s.openSocket)
	s.echo.GET(jwksPath, s.showKeys, s.limit)

	if !s.opts.AdminApart {
		s.operatorRoutes(s.echo)
	}
}

// maxTarget is how long the path and query of a request may be, in bytes: four times the longest pass in a query.
const maxTarget = 8 << 10

// shortTarget refuses what no address here is as long as.
func shortTarget(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c *echo.Context) error {
		if len(c.Request().RequestURI) > maxTarget {
			return echo.NewHTTPError(http.StatusRequestURITooLong, fmt.Sprintf("the address of a request may have at most %d bytes", maxTarget))
		}
		return next(c)
	}
}

// pages answers what is neither API nor socket nor the keys of passes with the web pages. A mistyped call of the API stays one.
func (s *Server) pages(next echo.HandlerFunc) echo.HandlerFunc {
	if s.opts.Web == nil {
		return next
	}
	return func(c *echo.Context) error {
		if path := c.Request().URL.Path; strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/ws/") || path == jwksPath {
			return next(c)
		}
		if s.opts.AdminApart && isConsole(c.Request().URL.Path) {
			return next(c) // there is nothing of the kind here
		}
		s.opts.Web.ServeHTTP(c.Response(), c.Request())
		return nil
	}
}

// NewHTTPServer makes the http.Server for one of this package's handlers. Its limits are for plain requests; they end
// with the upgrade of a socket, and what goes on for longer moves them: see stream.go. The longest other answers are the
// audit of a large sale and a profile of 30 s.
func NewHTTPServer(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      90 * time.Second,
		IdleTimeout:       2 * time.Minute, // above the 60 and 75 s of the usual proxies, so that they close first
		MaxHeaderBytes:    16 << 10,        // twice the longest token
		ConnContext:       withCaller,
		ConnState:         noteIdle,
	}
}
