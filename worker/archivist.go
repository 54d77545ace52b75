package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sluice/fault"
	"sluice/queue"
	"sluice/words"
)

const (
	// archiveEvery is how often an archivist looks what there is to do.
	archiveEvery = 10 * time.Second
	// archiveLease is how long an archivist that died keeps others from its work. To judge a sale may take a part of it.
	archiveLease = time.Minute
	// archiveAgain is how long a sale that is held back is left alone: to judge it may take a reading of all its orders.
	archiveAgain = 10 * time.Minute
	// purgePage is how many orders lose their user in one transaction, and purgePages how many of them are done at once.
	purgePage  = 200
	purgePages = 100
	// leftoversFor is how long Redis is looked through for what processes may have made that did not know yet.
	leftoversFor = time.Hour
)

// Archivist takes sales that are over out of Redis, and users out of their orders. Every process that works has one, and one
// at a time does what comes by itself; two at once do no harm.
//
// A sale is judged, then kept as archived in the database, then erased in Redis, then kept as done. Whoever dies in between
// is followed by the next archivist. What was judged is what is erased: the database and the script that erases each look
// once more, in their own step, and where something changed since, the sale goes on as it was.
type Archivist struct {
	queue   *queue.Queue
	store   *Store
	broker  Broker
	auditor *Auditor
	opts    ArchivistOptions
	log     *slog.Logger
	refused map[string]refusal // by sale
}

// refusal is why a sale was not archived when it was due, and when it was judged so, ms by Redis time.
type refusal struct {
	why string
	at  int64
}

// ArchivistOptions say what an archivist does by itself.
type ArchivistOptions struct {
	Node         string
	ArchiveAfter time.Duration // how long after its end a sale is archived; 0 = only when somebody asks for it
	PurgeAfter   time.Duration // how long after it was archived a sale loses its users; 0 = only when somebody asks for it
}

// NewArchivist makes an archivist.
func NewArchivist(q *queue.Queue, store *Store, broker Broker, opts ArchivistOptions, log *slog.Logger) *Archivist {
	return &Archivist{
		queue: q, store: store, broker: broker, auditor: NewAuditor(q, store, broker), opts: opts, log: log, refused: map[string]refusal{},
	}
}

// Run works until ctx ends. It rides out every failure.
func (a *Archivist) Run(ctx context.Context) {
	if a.opts.ArchiveAfter > 0 {
		a.log.Info("sales are archived by themselves", "after", a.opts.ArchiveAfter)
	}
	failing := trouble{log: a.log, what: "archive sales"}
	for wait := archiveEvery; sleep(ctx, wait); {
		wait = archiveEvery
		err := a.Once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failing.met(err) // for the log only: nothing waits for it
			continue
		}
		failing.over()
	}
}

// Once archives what is due, ends what was begun, and purges users, unless another process does.
func (a *Archivist) Once(ctx context.Context) error {
	if err := a.once(ctx); !errors.Is(err, errNotMine) {
		return err
	}
	return nil
}

func (a *Archivist) once(ctx context.Context) error {
	if err := a.lease(ctx); err != nil {
		return err
	}
	at, err := a.queue.Time(ctx)
	if err != nil {
		return err
	}
	archives, err := a.store.Archives(ctx)
	if err != nil {
		return err
	}
	here, err := a.queue.Sales(ctx)
	if err != nil {
		return err
	}
	listed := map[string]bool{}
	for _, sale := range here {
		listed[sale] = true
	}
	for _, archive := range archives {
		if err := a.see(ctx, archive, listed[archive.Sale], at); err != nil {
			return err
		}
	}
	return a.due(ctx, at)
}

// see does what is left to do of a sale that is archived, or about to be.
func (a *Archivist) see(ctx context.Context, archive queue.Archive, listed bool, at int64) error {
	if archive.Done == 0 {
		err := a.finish(ctx, archive)
		if isAnswer(err) {
			a.log.Info("a sale was not archived", "sale", archive.Sale, "why", err)
			return nil
		}
		return err
	}
	if listed || at-archive.Done < leftoversFor.Milliseconds() {
		if err := a.queue.EraseLeftovers(ctx, archive.Sale); err != nil {
			return err
		}
	}
	due := a.opts.PurgeAfter > 0 && at-archive.Done >= a.opts.PurgeAfter.Milliseconds()
	if archive.Purged > 0 || !archive.Purge && !due {
		return nil
	}
	if !archive.Purge {
		if err := a.note(ctx, "purge", archive.Sale, at); err != nil {
			return err
		}
	}
	for range purgePages { // and the rest next time: the lease must not run out
		more, err := a.store.PurgeUsers(ctx, archive.Sale, purgePage)
		if err != nil {
			return err
		}
		fault.Point("archive.purged")
		if !more {
			a.log.Info("a sale has lost its users", "sale", archive.Sale)
			return nil
		}
	}
	return a.lease(ctx)
}

// errNotMine is the error of an archivist while another one works.
var errNotMine = errors.New("another archivist works")

// lease keeps others from the work for a while, or fails with errNotMine.
func (a *Archivist) lease(ctx context.Context) error {
	mine, err := a.queue.Lease(ctx, "archive", a.opts.Node, archiveLease)
	if err == nil && !mine {
		return errNotMine
	}
	return err
}

// due archives the sales that ended long enough ago.
func (a *Archivist) due(ctx context.Context, at int64) error {
	if a.opts.ArchiveAfter == 0 {
		return nil
	}
	sales, err := a.store.Sales(ctx)
	if err != nil {
		return err
	}
	for _, sale := range sales {
		before, refused := a.refused[sale.ID]
		if at-sale.ClosesAt.UnixMilli() < a.opts.ArchiveAfter.Milliseconds() || refused && at-before.at < archiveAgain.Milliseconds() {
			continue
		}
		err := a.Archive(ctx, sale.ID, false)
		if err == nil {
			err = a.note(ctx, "archive", sale.ID, at)
		}
		switch {
		case isAnswer(err):
			why := err.Error()
			if why != before.why {
				a.log.Warn("a sale is due to be archived and cannot be yet", "sale", sale.ID, "why", why, "again_in", archiveAgain)
			}
			a.refused[sale.ID] = refusal{why, at}
		case err != nil:
			return err
		default:
			delete(a.refused, sale.ID)
		}
		if err := a.lease(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note writes into the audit log what an archivist did by itself.
func (a *Archivist) note(ctx context.Context, action, sale string, at int64) error {
	return a.store.LogChange(ctx, Change{At: at, Who: "retention", Action: action, Sale: sale})
}

// Archive takes a sale that is over out of Redis: all its keys go, its settings and orders stay in the database. With purge,
// archivists take the users out of its orders afterwards. Archiving again goes on where it was cut off, and changes nothing
// when it is done. Errors: Conflict when something of the sale is not over, which says what and what to do, and then
// the sale stays as it is; NoSuchSale; Unavailable. It reads every order of the sale.
func (a *Archivist) Archive(ctx context.Context, sale string, purge bool) error {
	archive, err := a.store.Archive(ctx, sale)
	if err != nil {
		return err
	}
	if archive == nil {
		judged, err := a.judge(ctx, sale)
		if err != nil {
			return err
		}
		fault.Point("archive.judged")
		if err := a.store.BeginArchive(ctx, judged); err != nil {
			return err
		}
		archive = &judged
	}
	if archive.Done == 0 {
		fault.Point("archive.kept")
		if err := a.finish(ctx, *archive); err != nil {
			return err
		}
	}
	if !purge {
		return nil
	}
	return a.store.AskPurge(ctx, sale)
}

// finish erases a sale in Redis that is kept as archived. One that was changed since it was judged goes on as it was.
func (a *Archivist) finish(ctx context.Context, archive queue.Archive) error {
	if err := a.queue.Erase(ctx, archive.Sale, archive.Version); err != nil {
		if queue.CodeOf(err) == queue.Conflict {
			if undone := a.store.UndoArchive(ctx, archive); undone != nil {
				return undone
			}
		}
		return err
	}
	fault.Point("archive.erased")
	at, err := a.queue.Time(ctx)
	if err != nil {
		return err
	}
	if err := a.store.EndArchive(ctx, archive.Sale, at); err != nil {
		return err
	}
	a.log.Info("a sale was archived", "sale", archive.Sale)
	return nil
}

// judge says whether a sale is over, and what there is to keep of it. The version of its settings is read first: what
// changes afterwards makes the erasing fail.
func (a *Archivist) judge(ctx context.Context, id string) (queue.Archive, error) {
	none := queue.Archive{}
	sale, err := a.store.Sale(ctx, id)
	if err != nil {
		return none, err
	}
	version, err := a.queue.SettingsVersion(ctx, id)
	if err != nil {
		return none, err
	}
	seat, err := a.queue.Look(ctx, id, "")
	if err != nil {
		return none, err
	}
	refuse := func(format string, args ...any) (queue.Archive, error) {
		return none, &queue.Error{Code: queue.Conflict, Message: fmt.Sprintf("the sale %q cannot be archived yet: ", id) + fmt.Sprintf(format, args...)}
	}
	switch seat.State {
	case queue.Closed:
	case queue.Recovering:
		return none, &queue.Error{Code: queue.Unavailable, Message: fmt.Sprintf("the sale %q is being put right; try again in a moment", id), RetryAfter: time.Second}
	default:
		return refuse("it is %s; it closes at %s, or close it with: sluice sale close %s", seat.State, sale.ClosesAt.Format(time.RFC3339), id)
	}
	left, err := a.store.Unsettled(ctx, id)
	if err != nil {
		return none, err
	}
	if left.Unpaid > 0 {
		return refuse("%s not paid; the last one expires at %s", words.Plural(left.Unpaid, "order is", "orders are"), time.UnixMilli(left.Until).UTC().Format(time.RFC3339))
	}
	report, err := a.auditor.Audit(ctx, id)
	if err != nil {
		return none, err
	}
	switch {
	case left.Moves > 0 || report.Outbox > 0:
		return refuse("%s in its outbox, and %s on the way to Redis; try again in a moment, with a worker running",
			words.Plural(report.Outbox, "order waits", "orders wait"), words.Plural(left.Moves, "change of an order is", "changes of orders are"))
	case !report.Balanced:
		return refuse("its books do not add up: %s; see sluice audit %s", report.Problems[0], id)
	}
	if dead, err := a.letters(ctx, id); err != nil {
		return none, err
	} else if dead > 0 {
		return refuse("%s; see sluice dead list, then retry or drop each", words.Plural(dead, "of its orders is a dead letter", "of its orders are dead letters"))
	}
	if report.InFlight > 0 { // what no dead letter explains
		return refuse("%s on the way to the database; try again in a moment, with a worker running", words.Plural(report.InFlight, "order is", "orders are"))
	}
	text, err := json.Marshal(report)
	if err != nil {
		return none, fmt.Errorf("write the audit of sale %s: %w", id, err)
	}
	return queue.Archive{Sale: id, At: report.At, Audit: text, Version: version}, nil
}

// letters counts the dead letters of a sale. One that cannot be read is counted for none: if it holds units, the audit names it.
func (a *Archivist) letters(ctx context.Context, sale string) (int, error) {
	n, err := a.broker.DeadLetters(ctx)
	if err != nil || n == 0 {
		return 0, err
	}
	letters, err := a.broker.Letters(ctx, auditLetters)
	count := 0
	for _, letter := range letters {
		if letter.Err == nil && letter.Order.Sale == sale {
			count++
		}
	}
	return count, err
}
