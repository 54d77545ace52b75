package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sluice/words"
)

// Check says whether Apply would make the change, and changes nothing. A sale that is not here could be installed. Errors:
// those of Apply.
func (q *Queue) Check(ctx context.Context, sale Sale) error {
	return q.apply(ctx, sale, "check", Reach{})
}

// MayBecome says what Check says, of a sale that Redis does not have: by the settings that it had, and how many units of
// each item are sold. Errors: Conflict with the reason.
func (s *Sale) MayBecome(next *Sale, now time.Time, sold map[string]int64) error {
	if s.Lobby == 0 || !now.Before(s.OpensAt.Add(-time.Duration(s.Lobby))) { // people may have joined
		ids := func(sale *Sale) []string {
			var ids []string
			for _, item := range sale.Items {
				ids = append(ids, item.ID)
			}
			return ids
		}
		switch {
		case s.OpensAt.UnixMilli() != next.OpensAt.UnixMilli():
			return errFixed("opens_at", s.ID)
		case s.Limit != next.Limit:
			return errFixed("limit", s.ID)
		case s.Line.Order != next.Line.Order:
			return errFixed("line.order", s.ID)
		case s.Line.Order == FIFO && s.Sorted() != next.Sorted():
			return errFixed("access.codes.priority", s.ID)
		case !slices.Equal(ids(s), ids(next)):
			return errFixed("items", s.ID)
		}
	}
	for _, item := range next.Items {
		if item.Stock < sold[item.ID] {
			return errSold(item.ID, sold[item.ID])
		}
	}
	return nil
}

func errFixed(field, sale string) error {
	if field == "access.codes.priority" {
		field = "whether codes have a priority, which decides when the line is put in order,"
	}
	return &Error{Code: Conflict, Message: fmt.Sprintf("%s cannot change any more: people may have joined the sale %q", field, sale)}
}

func errSold(item string, units int64) error {
	return &Error{Code: Conflict, Message: fmt.Sprintf("the stock of %s cannot be lower than the %s", item, words.Plural(units, "unit that was sold", "units that were sold"))}
}
