package queue

import (
	"reflect"
	"slices"
	"testing"
)

func TestEveryKeyThatASaleHasOneOfIsListed(t *testing.T) {
	t.Parallel()
	k := keysOf("a")
	fields := reflect.ValueOf(k)
	for i := range fields.NumField() {
		if name := fields.Type().Field(i).Name; name != "limit" && name != "archived" && !slices.Contains(k.all(), fields.Field(i).String()) {
			t.Errorf("%s is not listed", name)
		}
	}
}
