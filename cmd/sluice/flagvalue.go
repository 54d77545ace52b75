package main

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"sluice/queue"
)

// plainValues are the options that have kong read values as it always does, and say what is wrong with one in our words: which
// flag, which value, and what would be right. Whoever stands at a terminal need not know Go, nor what a library calls a value.
func plainValues() []kong.Option {
	usual := kong.NewRegistry().RegisterDefaults()
	of := func(like reflect.Type, needs, example string) plainValue {
		return plainValue{Mapper: usual.ForType(like), needs: needs, example: example}
	}
	kind := func(like any, needs, example string) kong.Option {
		t := reflect.TypeOf(like)
		return kong.KindMapper(t.Kind(), of(t, needs, example))
	}
	// Their own errors are sentences already.
	typed := func(t reflect.Type, needs, example string) kong.Option {
		value := of(t, needs, example)
		value.speaks = true
		return kong.TypeMapper(t, value)
	}
	return []kong.Option{
		kind("", "a value", ""),
		kind([]string{}, "a value", ""),
		kind(0, "a whole number", "200"),
		kind(int64(0), "a whole number", "200"),
		kind(0.0, "a number", "0.5"),
		kong.KindMapper(reflect.Bool, plainBool{of(reflect.TypeFor[bool](), "true or false", "true")}),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), of(reflect.TypeFor[time.Duration](), "a duration", "90s")),
		typed(reflect.TypeFor[saleID](), "the id of a sale", "phone-x"),
		typed(reflect.TypeFor[queue.Rate](), "a rate", "20/s"),
		typed(reflect.TypeFor[closingTime](), "a time", "+30m"),
		typed(reflect.TypeFor[*hash](), "a hash", ""),
	}
}

// plainValue is a mapper of kong that has sentences of its own.
type plainValue struct {
	kong.Mapper
	needs   string // what a value has to be, with its article
	example string // of one, where a flag has no default that is a better one; "" = none
	speaks  bool   // what the mapper itself says is for people
}

// Decode reads one value.
func (p plainValue) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	switch {
	case token.IsEOL():
		return fmt.Errorf("%s is missing%s", p.needs, p.like(ctx.Value))
	case !token.IsValue():
		return fmt.Errorf("%s is missing before %s%s; write one that begins with - behind a =", p.needs, token, p.like(ctx.Value))
	}
	err := p.Mapper.Decode(ctx, target)
	switch {
	case err == nil && target.Kind() == reflect.Float64 && (math.IsNaN(target.Float()) || math.IsInf(target.Float(), 0)):
		return fmt.Errorf("%q is not %s%s", token, p.needs, p.like(ctx.Value))
	case err == nil || p.speaks:
		return err
	case beyondCounting(token.String()):
		return fmt.Errorf("%q is too large%s", token, p.like(ctx.Value))
	}
	return fmt.Errorf("%q is not %s%s", token, p.needs, p.like(ctx.Value))
}

// like is an example of what is right, as it is written.
func (p plainValue) like(value *kong.Value) string {
	example := p.example
	if value.HasDefault && value.Default != "" && value.Default != "0" {
		example = value.Default
	}
	switch {
	case example == "":
		return ""
	case value.Flag == nil:
		return ", write it like " + example
	}
	return ", write it like --" + value.Name + "=" + example
}

// beyondCounting says whether a text is a number that no variable holds.
func beyondCounting(text string) bool {
	_, whole := strconv.ParseInt(text, 0, 64)
	_, broken := strconv.ParseFloat(text, 64)
	return errors.Is(whole, strconv.ErrRange) || errors.Is(broken, strconv.ErrRange)
}

// plainBool is a plainValue of a flag that may stand alone.
type plainBool struct{ plainValue }

// Decode reads the value, where there is one.
func (p plainBool) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return p.Mapper.Decode(ctx, target)
	}
	return p.plainValue.Decode(ctx, target)
}

// IsBool lets the flag stand alone.
func (plainBool) IsBool() bool { return true }
