package main

import (
	"slices"
	"testing"
)

func TestALicenceThatDoesNotGoWithOursIsRefused(t *testing.T) {
	t.Parallel()
	for licence, fine := range map[string]bool{
		"MIT": true, "BSD-3-Clause AND MIT": true, "(MIT OR GPL-3.0)": true, "GPL-3.0 OR Apache-2.0": true,
		"GPL-3.0": false, "MIT AND GPL-2.0": false, "AGPL-3.0": false, "LGPL-3.0": false, "SEE LICENSE IN x": false, "UNLICENSED": false, "": false,
	} {
		if problem := (dependency{"a", "v1", licence}).problem(); (problem == "") != fine {
			t.Errorf("%q: got %q, want it to be fine: %v", licence, problem, fine)
		}
	}
}

func TestALicenceIsKnownByItsText(t *testing.T) {
	t.Parallel()
	const terms = "Redistribution and use in source and binary forms, with or\n// without modification, are permitted provided that\nthe above copyright notice"
	for text, want := range map[string][]string{
		"":    nil,
		terms: {"BSD-2-Clause"},
		terms + "\nmay be used to endorse or promote\n  products derived from": {"BSD-3-Clause"},
		"GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007":               {"GPL-3.0"},
		"GNU AFFERO GENERAL PUBLIC LICENSE\nVersion 3":                         {"AGPL-3.0"},
		"All rights reserved.": nil,
	} {
		if got := licencesOf(text); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
