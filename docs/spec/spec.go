package spec

import "sync"

// Spec is both documents. It is safe for concurrent use.
type Spec struct{ library *library }

// load reads the documents once.
var load = sync.OnceValues(newLibrary)

// Load returns the documents, which are read once in a process. An error says that they cannot be read.
func Load() (*Spec, error) {
	l, err := load()
	if err != nil {
		return nil, err
	}
	return &Spec{l}, nil
}
