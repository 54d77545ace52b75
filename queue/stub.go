package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
)

var errStub = errors.New("stub")

type Queue struct{ rdb redis.UniversalClient }
type Options struct {
	Logger       *slog.Logger
	Registerer   prometheus.Registerer
	Node         string // names this node in logs and as consumer
	UserLimit    Rate
	AddressLimit Rate
	Embedded     bool // the Redis is the embedded one
}

func New(rdb redis.UniversalClient, opts Options) *Queue { return &Queue{rdb} }

type SaleFile struct{}

func ParseSale(data []byte) (*SaleFile, error)                        { return nil, errStub }
func (f *SaleFile) Resolve(now time.Time, before *Sale) (Sale, error) { return Sale{}, errStub }
func (s Sale) Validate() error                                        { return nil }
func (q *Queue) Sales(ctx context.Context) ([]string, error)          { return nil, errStub }
func (q *Queue) Sale(ctx context.Context, id string) (Sale, error)    { return Sale{}, errStub }
func (q *Queue) Apply(ctx context.Context, sale Sale) error           { return errStub }
func (q *Queue) Open(ctx context.Context, id string) (Sale, error)    { return Sale{}, errStub }
func (q *Queue) Pause(ctx context.Context, id string) (Sale, error)   { return Sale{}, errStub }
func (q *Queue) Resume(ctx context.Context, id string) (Sale, error)  { return Sale{}, errStub }
func (q *Queue) Close(ctx context.Context, id string) (Sale, error)   { return Sale{}, errStub }
func (q *Queue) Restore(ctx context.Context, sale Sale, orders func(yield func(Order) error) error) error {
	return errStub
}
func (q *Queue) Join(ctx context.Context, req JoinRequest) (Seat, error)          { return Seat{}, errStub }
func (q *Queue) Look(ctx context.Context, sale, user string) (Seat, error)        { return Seat{}, errStub }
func (q *Queue) Leave(ctx context.Context, sale, user string, number int64) error { return errStub }

type GrabRequest struct {
	Sale, User, Address, Item string
	Qty                       int64
	RequestID                 string
}
type Result int

const (
	Success Result = 0
	Already Result = -1
	SoldOut Result = -2
	NoTurn  Result = -3
	NotOpen Result = -4
)

func (r Result) String() string { return "" }

type Grabbed struct {
	Result Result
	Order  *Order
	Replay bool
	Stock  StockState
	Left   int64
	State  State
}

func (q *Queue) Grab(ctx context.Context, req GrabRequest) (Grabbed, error) {
	return Grabbed{}, errStub
}

type Snapshot struct {
	Sale                                  *Sale
	At                                    int64
	State                                 State
	Epoch, Served, Issued, Waiting, Turns int64
	Items                                 map[string]int64
	Stock                                 StockState
	Rate                                  float64
}

func (s *Snapshot) Ahead(number int64) int64                              { return 0 }
func (s *Snapshot) ETA(number int64) (eta, max time.Duration, known bool) { return 0, 0, false }

type EventKind int

const (
	TurnGiven    EventKind = iota // seats From..To were called, until Until
	TurnEnded                     // the turn of seat Number ran out
	OrderChanged                  // Order (of Order.User) is now in Order.Status
	SeatLeft                      // seat Number of User was given up
)

type Event struct {
	Kind     EventKind
	From, To int64
	Number   int64
	Until    int64
	User     string
	Order    *Order
}
type Observer interface {
	Tick(*Snapshot, []Event)
	Resync(*Snapshot)
}
type Watcher struct{}

func NewWatcher(q *Queue, sale string, observer Observer) *Watcher { return &Watcher{} }
func (w *Watcher) Run(ctx context.Context) error                   { return errStub }
func (w *Watcher) Kick()                                           {}
func (w *Watcher) Snapshot() *Snapshot                             { return nil }

type Entry struct {
	ID    string
	Order Order
}
type Outbox struct{}

func (q *Queue) Outbox(sale, consumer string) *Outbox { return &Outbox{} }
func (o *Outbox) Read(ctx context.Context, max int, block time.Duration) ([]Entry, error) {
	return nil, errStub
}
func (o *Outbox) Claim(ctx context.Context, minIdle time.Duration, max int) ([]Entry, error) {
	return nil, errStub
}
func (o *Outbox) Done(ctx context.Context, ids []string) error             { return errStub }
func (q *Queue) OutboxLen(ctx context.Context, sale string) (int64, error) { return 0, errStub }

type Adoption int

const (
	Marked   Adoption = iota // the mark was there
	Taken                    // the mark was missing: set now, and its stock taken
	NoStock                  // the mark is missing and the stock does not suffice
	Released                 // the order was released before
	Other                    // the user's mark is another order
)

func (q *Queue) Adopt(ctx context.Context, sale string, orders []Order) ([]Adoption, error) {
	return nil, errStub
}
func (q *Queue) Release(ctx context.Context, order Order, status OrderStatus) (bool, error) {
	return false, errStub
}

type Mark struct {
	User  string
	Order Order
}

func (q *Queue) Marks(ctx context.Context, sale string, fn func([]Mark) error) error { return errStub }
func (q *Queue) OutboxIDs(ctx context.Context, sale string) (map[string]bool, error) {
	return nil, errStub
}

type Balance struct {
	At    int64
	Items []ItemBalance
}
type ItemBalance struct {
	Item                  string
	Total, Stock, Winners int64
}

func (q *Queue) Balance(ctx context.Context, sale string) (Balance, error) { return Balance{}, errStub }
