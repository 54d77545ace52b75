// Package worker takes orders from where a grab leaves them to where they last: out of the outbox of a sale in Redis,
// through a broker, into a row of the database.
//
// An order walks through the files of this package in this order:
//
//   - relay.go reads the outbox of one sale, hands every entry to the broker, and takes it out of the outbox when the
//     broker answers for it;
//   - broker.go says what a broker is; amqp.go is RabbitMQ, direct.go the hand-over inside one process;
//   - writer.go gathers deliveries into batches, stores each in one transaction, tells Redis, and only then
//     acknowledges them;
//   - store.go and the other store files are the database.
//
// worker.go runs all of it for every sale.
//
// Nothing here decides whether somebody gets a unit. Redis has decided before, and where the database disagrees, the
// database is right: the order is stored as rejected and its unit given back.
//
// No step is ever taken exactly once. Each one is safe to take again with the same order id, and is taken again until
// its outcome is known: an entry leaves the outbox after the broker has confirmed it, and a message leaves the broker
// after its row is committed and Redis has been told. So a process may end between any two steps.
package worker
