package main

import "strings"

// licence is how the text of one is known: by sentences that stand in it and in no other.
type licence struct {
	name   string
	has    []string
	hasNot string // what makes another licence of it; "" = nothing does
}

// licences are those that anything here is under, and those that must not come in unnoticed.
func licences() []licence {
	const (
		anyone  = "redistribution and use in source and binary forms, with or without modification, are permitted"
		nobodys = "endorse or promote products derived from"
	)
	return []licence{
		{"AGPL-3.0", []string{"gnu affero general public license version 3"}, ""},
		{"Apache-2.0", []string{"apache license version 2.0, january 2004", "grant of patent license"}, ""},
		{"BSD-2-Clause", []string{anyone, "the above copyright notice"}, nobodys},
		{"BSD-3-Clause", []string{anyone, nobodys}, ""},
		{"CC0-1.0", []string{"cc0 1.0 universal"}, ""},
		{"GPL-2.0", []string{"gnu general public license version 2"}, ""},
		{"GPL-3.0", []string{"gnu general public license version 3"}, ""},
		{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose"}, ""},
		{"LGPL-2.1", []string{"gnu lesser general public license version 2.1"}, ""},
		{"LGPL-3.0", []string{"gnu lesser general public license version 3"}, ""},
		{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice"}, ""},
		{"MPL-2.0", []string{"mozilla public license version 2.0", "covered software"}, ""},
		{"Unlicense", []string{"this is free and unencumbered software released into the public domain"}, ""},
	}
}

// licencesOf are the names of all licences whose text is in a file.
func licencesOf(text string) []string {
	text = strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r <= ' ' || r == '*' || r == '#' || r == '/'
	}), " ")
	var names []string
	for _, l := range licences() {
		there := l.hasNot == "" || !strings.Contains(text, l.hasNot)
		for _, sentence := range l.has {
			there = there && strings.Contains(text, sentence)
		}
		if there {
			names = append(names, l.name)
		}
	}
	return names
}
