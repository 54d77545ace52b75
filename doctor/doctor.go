// Package doctor judges what an installation stands on: from the facts that Redis, RabbitMQ, the database and the machine
// tell of themselves, and from the settings of a node, it makes findings, each with what to change. It asks nobody
// itself, so that every judgement can be tested.
package doctor

import (
	"errors"
	"fmt"

	"sluice/queue"
)

// Level is how bad a finding is.
type Level string

// The levels of findings.
const (
	Sound  Level = "sound"
	Advice Level = "advice" // it works, but worse than it could, or something is not known
	Danger Level = "danger" // data or places can be lost, somebody can get in who must not, or it does not work at all
)

// Finding is one thing that was looked at.
type Finding struct {
	Part  string `json:"part"` // redis, broker, database, identity provider, machine or settings
	About string `json:"about"`
	Level Level  `json:"level"`
	Found string `json:"found"`         // what is so
	Do    string `json:"do,omitempty"`  // what to change; "" where it is sound
	Why   string `json:"why,omitempty"` // what happens otherwise
}

// findings are those of one part.
type findings struct {
	part string
	list []Finding
}

func (f *findings) sound(about, found string, args ...any) {
	f.list = append(f.list, Finding{Part: f.part, About: about, Level: Sound, Found: fmt.Sprintf(found, args...)})
}

// advise notes something that works, but could be better.
func (f *findings) advise(about, found, do, why string) {
	f.list = append(f.list, Finding{Part: f.part, About: about, Level: Advice, Found: found, Do: do, Why: why})
}

// warn notes something that loses data, lets somebody in, or does not work.
func (f *findings) warn(about, found, do, why string) {
	f.list = append(f.list, Finding{Part: f.part, About: about, Level: Danger, Found: found, Do: do, Why: why})
}

// Worst is the worst level of some findings; Sound of none.
func Worst(list []Finding) Level {
	worst := Sound
	for _, f := range list {
		if f.Level == Danger {
			return Danger
		}
		if f.Level == Advice {
			worst = Advice
		}
	}
	return worst
}

// Away is the finding of a part that could not be asked.
func Away(part string, err error) Finding {
	f := Finding{
		Part: part, About: "reachable", Level: Danger, Found: err.Error(),
		Do: "start it, or correct its URL", Why: "nothing can be sold without it",
	}
	var away *queue.Away
	if errors.As(err, &away) {
		f.Found, f.Do = away.Found(), away.Do
	}
	return f
}
