package ledgerlog

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"
)

// fractionDigitsMax is how many digits a fraction may have that no double equals: doubles are written with that many.
const fractionDigitsMax = 17

// decode reads JSON strictly, so that it says one thing to every reader. encoding/json of version 1 also takes names in
// another case and names given twice. All members of the type must be there.
func decode(body string, value any) error {
	if _, err := jcs.Transform([]byte(body)); err != nil {
		return refuse("malformed", "%v", err)
	}
	if err := checkNumbers(body); err != nil {
		return err
	}
	if err := checkMembers(jsontext.Value(body), reflect.TypeOf(value).Elem(), "the answer"); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(body), value); err != nil {
		return refuse("malformed", "%v", err)
	}
	return nil
}

// checkNumbers refuses a number that its canonical form would change.
func checkNumbers(body string) error {
	decoder := jsontext.NewDecoder(strings.NewReader(body))
	for {
		token, err := decoder.ReadToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return refuse("malformed", "%v", err)
		}
		if token.Kind() == '0' && !isExact(token.String()) {
			return refuse("malformed", "not a number that a double holds: %.40s", token.String())
		}
	}
}

func isExact(token string) bool {
	value, err := strconv.ParseFloat(token, 64)
	if err != nil {
		return false
	}
	written, exponent, err := decimalOf(token)
	if err != nil || value == 0 {
		return err == nil && written == ""
	}
	if exponent < 0 && len(written) <= fractionDigitsMax {
		return true
	}
	canonical, err := jcs.NumberToJSON(value)
	if err != nil {
		return false
	}
	kept, keptExponent, err := decimalOf(canonical)
	return err == nil && kept == written && keptExponent == exponent
}

// decimalOf returns a number without its sign as digits × 10^exponent. The digits have no zeros at either end.
func decimalOf(token string) (digits string, exponent int, err error) {
	mantissa, power, hasPower := strings.Cut(strings.ToLower(strings.TrimPrefix(token, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "", 0, nil
	}
	if hasPower {
		exponent, err = strconv.Atoi(power)
	}
	short := strings.TrimRight(digits, "0")
	return short, exponent - len(fraction) + len(digits) - len(short), err
}
