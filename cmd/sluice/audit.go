package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sluice/words"
)

// auditCmd is `sluice audit`.
type auditCmd struct {
	serverFlags
	saleName
	JSON bool `name:"json" help:"Print the server's JSON."`
}

// Help is shown below the flags.
func (*auditCmd) Help() string {
	return `Compares Redis, the database and what is on the way between them, order by order. Exits with 1 when it does not hold.

Example:

    sluice audit phone-x --admin-token-file admin.txt`
}

// Run prints the audit and fails when it does not hold.
func (c *auditCmd) Run(ctx context.Context, std *stdio) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	audit, answer, err := fetchAudit(ctx, client, string(c.Sale))
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(std.out, answer)
	} else {
		err = audit.print(std.out)
	}
	if err != nil {
		return err
	}
	if !audit.Balanced {
		return fmt.Errorf("the audit of %s does not hold: %s", c.Sale, audit.why())
	}
	return nil
}

// auditReport is the answer of the server's audit of one sale.
type auditReport struct {
	Sale     string      `json:"sale"`
	At       wireTime    `json:"at"`
	Balanced bool        `json:"balanced"` // the verdict
	Items    []auditItem `json:"items"`
	Redis    struct {
		Balanced bool `json:"balanced"`
	} `json:"redis"`
	Database struct {
		Balanced   bool  `json:"balanced"`
		DoubleLive int64 `json:"double_live"` // users with more than one live order
		OverLimit  int64 `json:"over_limit"`  // orders of more units than the sale's limit
	} `json:"database"`
	Unmatched []auditUnmatched `json:"unmatched"`
	InFlight  int64            `json:"in_flight"` // marks too young to be missed in the database
	Outbox    int64            `json:"outbox"`
	Broker    struct {
		Orders int64 `json:"orders"`
		Dead   int64 `json:"dead"`
		Away   bool  `json:"away"` // nobody knows what it holds
	} `json:"broker"`
	Problems []string `json:"problems"`
}

// auditItem is the balance of one item, in units.
type auditItem struct {
	Item    string `json:"item"`
	Total   int64  `json:"total"`
	Stock   int64  `json:"stock"`   // left in Redis
	Winners int64  `json:"winners"` // marked in Redis
	Sold    int64  `json:"sold"`    // counted in the database
	Live    int64  `json:"live"`    // of live orders in the database
}

// auditUnmatched is an order that one store has and the other misses.
type auditUnmatched struct {
	Order string `json:"order"`
	User  string `json:"user"`
	Why   string `json:"why"`
}

// fetchAudit asks the server for the audit of a sale. It blocks while the server reads every order.
func fetchAudit(ctx context.Context, client *apiClient, sale string) (auditReport, []byte, error) {
	var audit auditReport
	answer, err := client.get(ctx, &audit, salesPath(sale, "audit")...)
	if err != nil {
		return auditReport{}, nil, fmt.Errorf("audit %s: %w", sale, err)
	}
	return audit, answer, nil
}

// settled says whether every order that was taken has reached the database.
func (a auditReport) settled() bool {
	if a.InFlight > 0 || a.Outbox > 0 || a.Broker.Orders > 0 || a.Broker.Away {
		return false
	}
	for _, item := range a.Items {
		if item.Winners != item.Sold {
			return false
		}
	}
	return true
}

// sold is the number of units sold by the database, over all items.
func (a auditReport) sold() int64 {
	var units int64
	for _, item := range a.Items {
		units += item.Sold
	}
	return units
}

// marked is the number of units that have a winner in Redis, over all items: sold, or about to be.
func (a auditReport) marked() int64 {
	var units int64
	for _, item := range a.Items {
		units += item.Winners
	}
	return units
}

// why says in one line what does not hold.
func (a auditReport) why() string {
	if len(a.Problems) > 0 {
		return strings.Join(a.Problems, "; ")
	}
	if n := len(a.Unmatched); n > 0 {
		return words.Count(n, "order") + " unmatched"
	}
	return "the server names no reason"
}

// print writes the table and the verdict.
func (a auditReport) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "ITEM\tTOTAL\tSTOCK\tWINNERS\tSOLD\tLIVE\t")
	for _, item := range a.Items {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n", item.Item, item.Total, item.Stock, item.Winners, item.Sold, item.Live)
	}
	if err := table.Flush(); err != nil {
		return err
	}

	facts := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(facts)
	fmt.Fprintf(facts, "redis\t%s\n", verdict(a.Redis.Balanced))
	fmt.Fprintf(facts, "database\t%s, %s with two live orders, %s over the limit\n",
		verdict(a.Database.Balanced), words.Count(a.Database.DoubleLive, "user"), words.Count(a.Database.OverLimit, "order"))
	broker := fmt.Sprintf("%d in the broker, %d dead", a.Broker.Orders, a.Broker.Dead)
	if a.Broker.Away {
		broker = "and the broker does not answer: what it holds may be more"
	}
	fmt.Fprintf(facts, "on the way\t%d in flight, %d in the outbox, %s\n", a.InFlight, a.Outbox, broker)
	fmt.Fprintf(facts, "unmatched\t%d\n", len(a.Unmatched))
	for _, order := range a.Unmatched {
		fmt.Fprintf(facts, "\t%s of %s: %s\n", order.Order, order.User, order.Why)
	}
	for _, problem := range a.Problems {
		fmt.Fprintf(facts, "problem\t%s\n", problem)
	}
	fmt.Fprintf(facts, "verdict\t%s at %s\n", map[bool]string{true: "holds", false: "DOES NOT HOLD"}[a.Balanced], localTime(a.At.Time))
	return facts.Flush()
}

func verdict(balanced bool) string {
	if balanced {
		return "balanced"
	}
	return "NOT BALANCED"
}
