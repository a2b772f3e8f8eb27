package ledgerlog

import (
	"regexp"
	"strconv"
	"strings"
)

const label = `[a-z0-9]([a-z0-9-]*[a-z0-9])?`

var (
	nameForm = regexp.MustCompile(`\A` + label + `(\.` + label + `)*(:[1-9][0-9]{0,4})?(/[a-z0-9._~-]+)*\z`)
	idForm   = regexp.MustCompile(`\A[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\z`)
)

// CheckName takes the name of a service, with which every origin begins.
func CheckName(name string) error {
	if !nameForm.MatchString(name) || len(name) > 120 {
		return refuse("malformed", "not the name of a service: %q", name)
	}
	for _, segment := range strings.Split(name, "/") {
		if segment == "." || segment == ".." {
			return refuse("malformed", "a segment %q in the name of a service: %q", segment, name)
		}
	}
	return nil
}

// Origin returns the origin of a log. kind is "ledgers" or "masters".
func Origin(name, kind, id string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if (kind != "ledgers" && kind != "masters") || !idForm.MatchString(id) {
		return "", refuse("malformed", "not a log: %s/%s", kind, id)
	}
	return name + "/" + kind + "/" + id, nil
}

// CheckOrigin takes an origin that Origin returns.
func CheckOrigin(origin string) error {
	rest, id, _ := cutLast(origin, "/")
	name, kind, _ := cutLast(rest, "/")
	_, err := Origin(name, kind, id)
	return err
}

// Decimal reads a number in its one form: no sign, no leading zero, below 2^53.
func Decimal(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 || number > 1<<53-1 || strconv.FormatInt(number, 10) != text {
		return 0, refuse("malformed", "not a number: %q", text)
	}
	return number, nil
}
