package queue_test

import (
	"slices"
	"strings"
	"testing"

	"sluice/queue"
)

func TestARedisTellsOfItselfAndOfTheKeysOfItsSales(t *testing.T) {
	t.Parallel()
	l := realLine(t, queue.Options{})
	sale := l.start(nil)
	all, err := queue.Inspect(t.Context(), l.rdb)
	if err != nil {
		t.Fatal(err)
	}
	facts := all[0]
	if facts.Scripts != nil || facts.Role != "master" || facts.Version == "" || facts.Policy == "" || facts.RoundTrip <= 0 || len(facts.Untold) > 0 {
		t.Errorf("it says %+v", facts)
	}
	if !slices.ContainsFunc(facts.Keys, func(key queue.KeyMemory) bool { return strings.Contains(key.Key, sale.ID) && key.Bytes > 0 }) {
		t.Error("the keys of the sale are not among those it tells of")
	}
}
