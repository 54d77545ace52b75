package doctor

import (
	"fmt"

	"sluice/words"
	"sluice/worker"
)

// oldestRabbit is the first whose quorum queues dead-letter at least once.
const oldestRabbit = "3.10"

// Broker judges a RabbitMQ.
func Broker(facts worker.BrokerFacts) []Finding {
	f := &findings{part: "broker"}
	if older(facts.Version, oldestRabbit) {
		f.warn("version", facts.Product+" "+facts.Version, "use RabbitMQ "+oldestRabbit+" or later", "older ones can lose a message on its way to the dead letters")
	} else {
		f.sound("version", "%s %s", facts.Product, facts.Version)
	}
	for _, err := range facts.Away {
		away := Away(f.part, err)
		f.advise("nodes", away.Found, away.Do, "with one node fewer, fewer can be lost before orders stand still")
	}
	if facts.Blocked != "" {
		f.warn("alarm", "it takes no messages: "+facts.Blocked, "make room on its disk or in its memory", "orders pile up in Redis until no more turns are given")
	} else {
		f.sound("alarm", "none is raised")
	}
	for _, queue := range facts.Queues {
		switch {
		case queue.Differs != "":
			f.warn("queue "+queue.Name, queue.Differs, fmt.Sprintf("once it is empty, delete the queue %s; it is made again as it has to be", queue.Name),
				"no node can use it, or orders are dropped when it is full")
		case !queue.There:
			f.sound("queue "+queue.Name, "it is not there yet; the first node makes it")
		case queue.Dead && queue.Messages > 0:
			f.advise("dead letters", words.Count(queue.Messages, "order")+" could not be written", "see sluice dead list, then retry or drop each",
				"their units are sold to nobody meanwhile")
		default:
			f.sound("queue "+queue.Name, "%s, %s", words.Count(queue.Messages, "message"), words.Count(queue.Consumers, "consumer"))
		}
	}
	return f.list
}
