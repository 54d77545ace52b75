package queue

// State is the state of a sale. It follows from the settings and Redis time alone and is stored nowhere, so that no
// two parts of the system can disagree about it.
type State string

// The states of a sale.
const (
	Scheduled  State = "scheduled"
	Lobby      State = "lobby"
	Open       State = "open"
	Paused     State = "paused"
	Closed     State = "closed"
	Recovering State = "recovering"
)

// StockState says whether a sale, or one item of it, can still be had.
type StockState string

// The states of stock.
const (
	Available StockState = "available"
	Held      StockState = "held" // none left, but unpaid holds may return
	Gone      StockState = "gone" // none left and none can return
)
