package ledgerlog

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"reflect"
	"regexp"
	"strings"
)

// place is the one form of a seq, an index or a size: digits alone, where JSON would also take -0, 0.0 or 1e0.
var place = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// checkMembers refuses a value that lacks a member of the type, which json.Unmarshal takes for its zero value, as it
// takes null. Only what is a pointer or raw JSON may be null. A member whose tag has omitzero may be absent.
func checkMembers(value jsontext.Value, of reflect.Type, at string) error {
	isNull := value.Kind() == 'n'
	switch {
	case of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Uint8: // JSON as it is
		return nil
	case of.Kind() == reflect.Pointer && isNull:
		return nil
	case of.Kind() == reflect.Pointer:
		return checkMembers(value, of.Elem(), at)
	case isNull:
		return refuse("malformed", "%s is null", at)
	case of.Kind() == reflect.Int64 && !place.Match(value):
		return refuse("malformed", "%s is %.40s, which is no integer in digits alone", at, value)
	case of.Kind() == reflect.Slice:
		return checkItems(value, of.Elem(), at)
	case of.Kind() == reflect.Struct:
		return checkStruct(value, of, at)
	}
	return nil
}

func checkItems(value jsontext.Value, of reflect.Type, at string) error {
	var items []jsontext.Value
	if err := json.Unmarshal(value, &items); err != nil {
		return refuse("malformed", "%v", err)
	}
	for _, item := range items {
		if err := checkMembers(item, of, at); err != nil {
			return err
		}
	}
	return nil
}

func checkStruct(value jsontext.Value, of reflect.Type, at string) error {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal(value, &members); err != nil {
		return refuse("malformed", "%v", err)
	}
	for _, field := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		member, isThere := members[name]
		if !isThere && options != "omitzero" {
			return refuse("malformed", "%s has no %s", at, name)
		}
		if !isThere {
			continue
		}
		if err := checkMembers(member, field.Type, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}
