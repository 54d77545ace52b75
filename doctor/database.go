package doctor

import (
	"fmt"
	"strings"

	"sluice/worker"
)

// Database judges a database. conns is how many connections a node makes to it at most.
func Database(facts worker.DatabaseFacts, conns int) []Finding {
	f := &findings{part: "database"}
	f.sound("version", "%s %s", facts.Dialect, facts.Version)
	if facts.ReadOnly {
		f.warn("role", "it takes no writes", "point --database-url at the one that does", "orders would wait in the broker for ever")
	} else {
		f.sound("role", "it takes writes")
	}
	for _, setting := range facts.Careless {
		f.warn("durability", fmt.Sprintf("%s is %s", setting.Name, setting.Value), fmt.Sprintf("set %s to %s", setting.Name, setting.Want),
			"a crash takes orders that were confirmed")
	}
	if len(facts.Careless) == 0 {
		f.sound("durability", "what is committed is on the disk")
	}
	if len(facts.Padded) > 0 {
		f.warn("collation", strings.Join(facts.Padded, ", "), "restore the tables as sluice migrate makes them",
			"ids that differ in case or in spaces would count as one user, or a transaction would not be one")
	} else if facts.Applied > 0 {
		f.sound("collation", "ids are compared byte for byte")
	}
	switch {
	case facts.Applied == 0:
		f.advise("tables", "there are none yet", "run sluice migrate, or start a node, which does it too", "")
	case facts.Applied < facts.Known:
		f.advise("tables", fmt.Sprintf("they are of version %d of %d", facts.Applied, facts.Known), "run sluice migrate, or start a node, which does it too", "")
	case facts.Applied > facts.Known:
		f.warn("tables", fmt.Sprintf("they are of version %d, and this program knows %d", facts.Applied, facts.Known), "use the program that made them, or a newer one",
			"this one may read or write them wrongly")
	default:
		f.sound("tables", "they are of the newest version, %d", facts.Known)
	}
	if facts.LogGuarded {
		f.sound("audit log", "the database keeps its entries as they were written")
	} else if facts.Applied > 0 {
		f.advise("audit log", "whoever writes to the database can change its entries",
			"let the database user make triggers (MySQL: GRANT TRIGGER, and log_bin_trust_function_creators = 1), and run sluice migrate", "")
	}
	if facts.MaxConns > 0 && int64(conns) > facts.MaxConns*8/10 {
		f.warn("connections", fmt.Sprintf("it takes %d, and one node alone makes up to %d", facts.MaxConns, conns), "raise max_connections, or lower --database-conns",
			"nodes and workers fail while others hold them")
	}
	if facts.Dialect != "sqlite" {
		f.clock(facts.Offset, facts.RoundTrip, "the times of orders would not fit those that shoppers were told")
	}
	return f.list
}
