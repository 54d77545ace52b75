package main

import "context"

// figure is one thing that is measured.
type figure struct {
	name, title string
	big         bool // has no tiny size
	measure     func(b *bench, ctx context.Context) (result, error)
}

// figures are all of them, in the order of the report.
func figures() []figure {
	return []figure{
		{name: "sockets", title: "what a waiting shopper costs, and how fast all are told", measure: (*bench).measureSockets},
		{name: "turns", title: "from admission to the frame that says so", measure: (*bench).measureTurns},
		{name: "grabs", title: "the grab path of a node, without HTTP", measure: (*bench).measureGrabs},
		{name: "http", title: "grabs over HTTP", measure: (*bench).measureHTTP},
		{name: "orders", title: "from outbox to row", measure: (*bench).measureOrders},
		{name: "growth", title: "cost as it grows", measure: (*bench).measureGrowth},
		{name: "scenario", title: "a crowd in the lobby of a sale of 10,000 units", big: true, measure: (*bench).measureScenario},
	}
}

// size is how large everything is.
type size struct {
	rounds     int
	peers      int // connections of the figures about sockets
	settle     int // seconds that memory has to settle
	idle       int // seconds of watching idle connections
	fanOut     int // broadcasts in a row
	turns      int // turns given while the others wait
	grabs      int // users of the grab path
	wrkSeconds int
	units      int64 // on sale over HTTP
	backlog    int   // orders in the outbox
	messages   int   // orders through the broker alone
	inserts    int   // rows inserted one by one
	sessions   []int
	sales      []int
	stocks     []int64
	crowd      int // of the scenario
}

func sizes() map[string]size {
	return map[string]size{
		"full": {
			rounds: 3, peers: 15000, settle: 10, idle: 15, fanOut: 20, turns: 5000, grabs: 150_000, wrkSeconds: 10, units: 10_000,
			backlog: 450_000, messages: 150_000, inserts: 10_000, sessions: []int{1000, 5000, 15000, 60_000, 100_000}, sales: []int{1, 10, 30, 100},
			stocks: []int64{10, 1000, 100_000, 1_000_000}, crowd: promisedCrowd,
		},
		"tiny": {
			rounds: 1, peers: 100, settle: 0, idle: 1, fanOut: 2, turns: 50, grabs: 1000, wrkSeconds: 1, units: 100,
			backlog: 2000, messages: 1000, inserts: 100, sessions: []int{50, 100}, sales: []int{1, 2}, stocks: []int64{10, 100}, crowd: 200,
		},
	}
}
