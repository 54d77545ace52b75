package server

import "context"

// KeyFacts are what there is to know about the keys of an identity provider before a node stands on them.
type KeyFacts struct {
	Provider string // as the log names it: scheme and host of a URL, or the path of a file
	Plain    bool   // they come over plain HTTP from another machine
	Keys     int    // that tokens can be verified by
	Useless  string // why others are of no use; "" = there are none
	// Away is why there are no keys right now. A node starts all the same, and asks again; until then it cannot judge a token.
	Away error
}

// InspectKeys reads the keys from where a [Keyring] would, by the same rules, once. It blocks until the provider has answered,
// for some seconds at most. Its error is the one for which NewKeyring makes none, and a node does not start.
func InspectKeys(ctx context.Context, from string) (KeyFacts, error) {
	source, err := newKeySource(from)
	if err != nil {
		return KeyFacts{}, err
	}
	facts := KeyFacts{Provider: source.name, Plain: source.plain}
	set, err := source.take(ctx)
	if err == nil {
		facts.Keys, facts.Useless = len(set.keys), set.useless()
		err = set.usable()
	}
	if err != nil && source.local {
		return KeyFacts{}, source.unread(err)
	}
	facts.Away = err
	return facts, nil
}
