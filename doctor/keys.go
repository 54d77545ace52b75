package doctor

import (
	"sluice/server"
	"sluice/words"
)

// Keys judges the public keys of an identity provider.
func Keys(facts server.KeyFacts) []Finding {
	f := &findings{part: "identity provider"}
	if facts.Plain {
		f.warn("way", "the keys come from "+facts.Provider+" over plain HTTP", "give --jwks-url as https://", "whoever is on the way can put in keys of their own, and be anybody")
	} else {
		f.sound("way", "the keys come from %s, and nobody on the way can change them", facts.Provider)
	}
	switch {
	case facts.Away != nil:
		f.warn("keys", facts.Provider+" gives none: "+facts.Away.Error(), "correct --jwks-url, or have the provider answer there with its JWK Set",
			"a node starts, and lets nobody in by a token of the provider until it has keys")
	case facts.Useless != "":
		f.advise("keys", "some are of no use: "+facts.Useless, "see that tokens are signed with one of the others", "tokens that are signed with these are refused")
	default:
		f.sound("keys", "%s to verify tokens by", words.Count(facts.Keys, "key"))
	}
	return f.list
}
