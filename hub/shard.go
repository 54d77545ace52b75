package hub

import (
	"errors"
	"sync"
)

var (
	// ErrTooMany is returned by Session.Bind when the key has as many sessions as it may; the caller closes with 4409.
	ErrTooMany = errors.New("too many sessions of one key")
	// ErrClosed is returned by Session.Bind when the session has ended.
	ErrClosed = errors.New("session has ended")
)

// shard is one part of the hub's sessions: those whose id falls into it, and the index of those whose key does.
type shard struct {
	wheel wheel

	mu       sync.RWMutex
	sessions map[*Session]struct{}
	groups   map[string]map[string]*Session // group → key → first of a list through Session.sibling
}

func newShard() *shard {
	return &shard{sessions: make(map[*Session]struct{}), groups: make(map[string]map[string]*Session)}
}

func (d *shard) add(s *Session) {
	d.mu.Lock()
	d.sessions[s] = struct{}{}
	d.mu.Unlock()
}

func (d *shard) remove(s *Session) {
	d.mu.Lock()
	delete(d.sessions, s)
	d.mu.Unlock()
}

// all are the sessions whose id falls into the shard.
func (d *shard) all() []*Session {
	d.mu.RLock()
	defer d.mu.RUnlock()
	list := make([]*Session, 0, len(d.sessions))
	for s := range d.sessions {
		list = append(list, s)
	}
	return list
}

// bind puts the session into the index, unless the key has most sessions already or the session has ended.
func (d *shard) bind(s *Session, group, key string, most int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if most > 0 && count(d.groups[group][key]) >= most {
		return ErrTooMany
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return ErrClosed
	}
	s.group, s.key, s.bound = group, key, true
	keys := d.groups[group]
	if keys == nil {
		keys = make(map[string]*Session)
		d.groups[group] = keys
	}
	s.sibling = keys[key]
	keys[key] = s
	return nil
}

// unbind takes the session out of the index.
func (d *shard) unbind(s *Session, group, key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.groups[group]
	first := keys[key]
	switch {
	case first == s && s.sibling == nil:
		delete(keys, key)
		if len(keys) == 0 {
			delete(d.groups, group)
		}
	case first == s:
		keys[key] = s.sibling
	default:
		for at := first; at != nil; at = at.sibling {
			if at.sibling == s {
				at.sibling = s.sibling
				break
			}
		}
	}
	s.sibling = nil
}

// ofKey are the sessions of one key.
func (d *shard) ofKey(group, key string) []*Session {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return chain(nil, d.groups[group][key])
}

// ofGroup are the sessions of a group whose key falls into the shard.
func (d *shard) ofGroup(group string) []*Session {
	d.mu.RLock()
	defer d.mu.RUnlock()
	keys := d.groups[group]
	if len(keys) == 0 {
		return nil
	}
	list := make([]*Session, 0, len(keys))
	for _, first := range keys {
		list = chain(list, first)
	}
	return list
}

func (d *shard) count(group, key string) int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return count(d.groups[group][key])
}

func count(first *Session) int {
	n := 0
	for s := first; s != nil; s = s.sibling {
		n++
	}
	return n
}

func chain(list []*Session, first *Session) []*Session {
	for s := first; s != nil; s = s.sibling {
		list = append(list, s)
	}
	return list
}
