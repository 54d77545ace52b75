package queue

// OrderStatus is the state of an order, as the contract names it. It only ever moves forward:
// reserved → confirmed → paid, or to one of cancelled, expired and rejected, which are final.
type OrderStatus string

// The states of an order.
const (
	// Reserved is a grab whose row does not exist yet; it is never stored.
	Reserved  OrderStatus = "reserved"
	Confirmed OrderStatus = "confirmed"
	Paid      OrderStatus = "paid"
	Cancelled OrderStatus = "cancelled"
	Expired   OrderStatus = "expired"
	Rejected  OrderStatus = "rejected"
)

// Live says whether an order in this state keeps its stock and blocks its user from another one.
func (s OrderStatus) Live() bool {
	return s == Reserved || s == Confirmed || s == Paid
}

// OrderFilter says which orders of a sale are looked for.
type OrderFilter struct {
	Sale   string
	Begins string      // what the order's id or its user's begins with, byte for byte; "" = anything
	Status OrderStatus // "" = any
	Before string      // only ids below this one; "" = from the newest on
	Limit  int         // how many, at most
}

// Order is what a successful grab creates. Times are milliseconds since the Unix epoch, by the clock of the Redis
// server that took the stock.
type Order struct {
	ID        string // UUIDv7, made by the node before the grab; also the broker's message id
	Sale      string
	Item      string
	User      string
	Qty       int64
	RequestID string
	Status    OrderStatus
	CreatedAt int64
	PayBy     int64 // when the hold ends; 0 = the order needs no payment
	PaidAt    int64 // 0 = not paid

	// Trace is what happens to the order just now as a part of something that is followed, see package trace. It goes along
	// through outbox, broker and news, and is stored nowhere; "" = nobody follows it.
	Trace string
}
