package queue

import (
	"strconv"
	"strings"

	"sluice/trace"
)

// followed are the spans of one call of a script, one for each of its requests that somebody follows; nil when nobody does.
type followed []trace.Span

// follow begins them. contextOf is what request i belongs to.
func (q *Queue) follow(step trace.Step, n int, contextOf func(i int) string) followed {
	if q.opts.Tracer == nil {
		return nil
	}
	var spans followed
	for i := range n {
		if before := contextOf(i); before != "" {
			if spans == nil {
				spans = make(followed, n)
			}
			spans[i] = q.opts.Tracer.Continue(before, step)
			spans[i].Count(trace.Together, n)
		}
	}
	return spans
}

// contexts are those of the spans as a script reads them.
func (f followed) contexts() string {
	if f == nil {
		return ""
	}
	return contexts(len(f), func(i int) string { return f[i].Context() })
}

// end ends the spans, each with the error of its request.
func (f followed) end(errs []error) {
	for i, span := range f {
		span.End(string(CodeOf(errs[i])))
	}
}

// contexts writes which of the n entries of a call are followed: the number of each, from 1, and its context.
func contexts(n int, contextOf func(i int) string) string {
	var text strings.Builder
	for i := range n {
		context := contextOf(i)
		if context == "" {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(i + 1))
		text.WriteByte(' ')
		text.WriteString(context)
	}
	return text.String()
}
