package queue

// All names in Redis stand here. Every key of a sale starts sluice:{<sale>}: so that one sale is one cluster slot, and a
// script is given every key it touches.
const (
	salesKey = "sluice:sales"  // set: which sales there are
	leaseKey = "sluice:lease:" // prefix of strings: which process does what only one should

	// What nodes tell of themselves is one cluster slot, so that it is read at once. No sale's id has an underscore.
	nodesKey = "sluice:{_nodes}:names" // set: the nodes that have reported
	nodeKey  = "sluice:{_nodes}:of:"   // prefix of strings: the report of each node, which expires

	noSale = "_none" // stands for the sale in the keys of limits of what is of no one sale
)

// keys are the names of one sale.
type keys struct {
	meta    string // hash: settings, state, counters
	stock   string // hash: item → units left
	seats   string // hash: user → ticket
	turns   string // sorted set: number → deadline in sale time
	gone    string // bitmap: numbers that were given up
	conn    string // hash: ticket → the nodes that hold connections of it
	away    string // sorted set: ticket → since when nobody of it is here, in sale time; in the future, until when a poll is good
	recall  string // bitmap: numbers that are called before the line
	nodes   string // hash: node → until when it counts as living, in sale time
	lost    string // bitmap: tickets that a loss of Redis took and nobody has taken back
	leaves  string // string: 32 bytes a ticket, the entries of a lottery
	ranks   string // string: a byte a ticket, the priority with which it joined the lobby
	draw    string // string: the numbers of the tickets of a lobby that was put in order, then the tickets of the numbers, 4 bytes each
	dropout string // bitmap: tickets that were given up before a lottery's entries were frozen
	leavers string // set: tickets that were given up after that and before the draw
	codes   string // hash: code → uses and priority, as the settings say
	used    string // hash: code → how many users have used it
	coded   string // hash: user → the code that the user has used
	address string // hash: address → the seats that were taken from it, those that have ended included
	winners string // hash: user → mark of the live order
	past    string // hash: user → mark of the order released last
	outbox  string // stream: orders on their way to the broker
	held    string // sorted set: order that a writer has in hand → until when that counts, ms by Redis time; it expires
	news    string // stream, capped: what each tick tells the nodes
	audit   string // string: what the regular audit found last; it expires
	limit   string // prefix of what the limits have counted

	archived string // string: the sale was archived a while ago, and none of the others may be made again; it expires
}

func keysOf(sale string) keys {
	prefix := "sluice:{" + sale + "}:"
	return keys{
		meta:    prefix + "meta",
		stock:   prefix + "stock",
		seats:   prefix + "seats",
		turns:   prefix + "turns",
		gone:    prefix + "gone",
		conn:    prefix + "conn",
		away:    prefix + "away",
		recall:  prefix + "recall",
		nodes:   prefix + "nodes",
		lost:    prefix + "lost",
		leaves:  prefix + "leaves",
		ranks:   prefix + "ranks",
		draw:    prefix + "draw",
		dropout: prefix + "dropout",
		leavers: prefix + "leavers",
		codes:   prefix + "codes",
		used:    prefix + "used",
		coded:   prefix + "coded",
		address: prefix + "addresses",
		winners: prefix + "winners",
		past:    prefix + "past",
		outbox:  prefix + "outbox",
		held:    prefix + "held",
		news:    prefix + "news",
		audit:   prefix + "audit",
		limit:   prefix + "limit:",

		archived: prefix + "archived",
	}
}

// userLimit holds the moments of the user's last requests, as a list or as a string.
func (k keys) userLimit(user string, list bool) string {
	if list {
		return k.limit + "ul:" + user
	}
	return k.limit + "u:" + user
}

// addressLimit holds the moments of the last requests from an address, as a list or as a string.
func (k keys) addressLimit(address string, list bool) string {
	if list {
		return k.limit + "al:" + address
	}
	return k.limit + "a:" + address
}

// all lists the keys that a sale has one of while it is here; those of the limits are one for each user.
func (k keys) all() []string {
	return []string{
		k.meta, k.stock, k.seats, k.turns, k.gone, k.conn, k.away, k.recall, k.nodes, k.lost, k.leaves, k.draw, k.dropout,
		k.leavers, k.ranks, k.codes, k.used, k.coded, k.address, k.winners, k.past, k.outbox, k.held, k.news, k.audit,
	}
}
