package doctor

import "fmt"

// fewFiles is too few descriptors for a rush: a shopper needs one, for as long as they wait.
const fewFiles = 20_000

// MachineFacts are of the machine that this program runs on.
type MachineFacts struct {
	Files uint64 // descriptors that a process may have
}

// Machine judges the machine.
func Machine(facts MachineFacts) []Finding {
	f := &findings{part: "machine"}
	if facts.Files < fewFiles {
		f.advise("descriptors", fmt.Sprintf("a process may have %d", facts.Files), "set ulimit -n (LimitNOFILE=) to 262144", "each shopper takes one, so no more than that can wait at a node")
	} else {
		f.sound("descriptors", "a process may have %d, one for each shopper", facts.Files)
	}
	return f.list
}
