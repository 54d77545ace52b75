package worker

import "testing"

func TestADatabaseTellsOfItselfBeforeAndAfterItsMigration(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		s := openTest(t, url)
		before, err := s.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if before.Applied != 0 || before.Known == 0 || before.Version == "" || before.ReadOnly {
			t.Errorf("before it is migrated it says %+v", before)
		}
		if again, err := s.Inspect(t.Context()); err != nil || again.Applied != 0 {
			t.Errorf("asking changed it: %+v %v", again, err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := s.Inspect(t.Context())
		if err != nil || after.Applied != after.Known || len(after.Padded) != 0 {
			t.Errorf("after it was migrated it says %+v %v", after, err)
		}
	})
}

func TestRabbitMQTellsOfItsQueuesAndMakesNone(t *testing.T) {
	t.Parallel()
	r := newRabbit(t, rabbitURL(t), AMQPOptions{})
	facts, err := r.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(facts.Queues) != 2 || !facts.Queues[0].There || !facts.Queues[1].There || facts.Queues[1].Differs != "" || facts.Version == "" || facts.Blocked != "" {
		t.Errorf("it says %+v", facts)
	}
	other, err := NewAMQP(rabbitURL(t), AMQPOptions{Logger: quiet, Prefix: r.opts.Prefix + "none-"})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		facts, err := other.Inspect(t.Context())
		if err != nil || facts.Queues[0].There || facts.Queues[1].There {
			t.Errorf("of queues that nobody made it says %+v %v", facts, err)
		}
	}
}
