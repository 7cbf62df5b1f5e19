package main

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// The functions that replace those of Helm whose result is not a function of their arguments.
//
// A chart may draw a random value that it then drops: `default (randAlphaNum 16) .Values.password` draws always. So a draw
// is no error. Each draw has two stand-ins, which differ wherever two real draws could differ. The chart is rendered
// with the first ones, and again with the second ones: the output depends on a draw if and only if the two differ. Then
// some of the draws take the second stand-in, until one draw is found that alone changes the output, and one more
// render fails at this draw, which gives its place.
type draws struct {
	// Draws below this number take their second stand-in.
	second int
	// The draw with this number fails.
	failing int
	// The number of draws so far.
	count int
	// `lookup` finds nothing, instead of failing.
	emptyLookup bool
	// The call that failed.
	refused *refusal
}

// A call that cannot have a pure result.
type refusal struct {
	function string
	reason   string
	advice   string
}

func (r *refusal) Error() string { return fmt.Sprintf("`%s` %s", r.function, r.reason) }

const (
	isRandom  = "is random"
	isClock   = "reads the clock"
	isNewKey  = "makes a new key or certificate at each render"
	isCluster = "reads the cluster"
)

// Makes one draw and reports whether it takes its second stand-in.
func (d *draws) next(function, reason, advice string) (bool, error) {
	number := d.count
	d.count++
	if number == d.failing {
		return false, d.refuse(function, reason, advice)
	}
	return number < d.second, nil
}

func (d *draws) refuse(function, reason, advice string) error {
	d.refused = &refusal{function, reason, advice}
	return d.refused
}

// Draws one of two stand-ins.
func draw[T any](d *draws, function, reason string, first, second T) (T, error) {
	takesSecond, err := d.next(function, reason, "")
	if takesSecond {
		return second, err
	}
	return first, err
}

// Returns a text of n characters that repeats a pattern.
func pattern(text string, n int) string {
	return strings.Repeat(text, n/len(text)+1)[:n]
}

// Returns two stand-ins for the base64 of n bytes.
func standInBytes(n int) (string, string) {
	encode := base64.StdEncoding.EncodeToString
	return encode([]byte(pattern("q7R", n))), encode([]byte(pattern("X0k", n)))
}

// A certificate and its key, as templates read those of sprig.
type certificate struct {
	Cert string
	Key  string
}

func (d *draws) certificate(function string) (certificate, error) {
	return draw(d, function, isNewKey,
		certificate{pem("CERTIFICATE", "q7R"), pem("RSA PRIVATE KEY", "q7R")},
		certificate{pem("CERTIFICATE", "X0k"), pem("RSA PRIVATE KEY", "X0k")})
}

func pem(kind, text string) string {
	return fmt.Sprintf("-----BEGIN %s-----\n%s\n-----END %s-----\n", kind, pattern(text, 64), kind)
}

var (
	firstTime  = time.Date(2001, 2, 3, 4, 5, 6, 700_000_000, time.UTC)
	secondTime = time.Date(2092, 11, 30, 21, 54, 53, 200_000_000, time.UTC)
)

func (d *draws) now(function string) (time.Time, error) {
	return draw(d, function, isClock, firstTime, secondTime)
}

// Returns the functions for one render.
func (d *draws) functions() template.FuncMap {
	functions := template.FuncMap{
		"keys":   sortedDictKeys,
		"values": valuesByKey,
		"lookup": func(_, _, _, _ string) (map[string]any, error) {
			if d.emptyLookup {
				return map[string]any{}, nil
			}
			return nil, d.refuse("lookup", isCluster, "")
		},
		"getHostByName": func(string) (string, error) { return "", d.refuse("getHostByName", "asks the network", "") },
	}
	d.addRandom(functions)
	d.addKeys(functions)
	d.addClock(functions)
	return functions
}

func (d *draws) addRandom(functions template.FuncMap) {
	for name, stand := range map[string][2]string{
		"randAlphaNum": {"q7R", "X0k"}, "randAlpha": {"qR", "Xk"}, "randNumeric": {"71", "40"}, "randAscii": {"q7R", "X0k"},
	} {
		functions[name] = func(n int) (string, error) {
			if n <= 0 {
				return "", nil
			}
			return draw(d, name, isRandom, pattern(stand[0], n), pattern(stand[1], n))
		}
	}
	functions["randBytes"] = func(n int) (string, error) {
		if n <= 0 {
			return "", nil
		}
		first, second := standInBytes(n)
		return draw(d, "randBytes", isRandom, first, second)
	}
	functions["randInt"] = func(low, high int) (int, error) {
		if high <= low {
			return 0, fmt.Errorf("`randInt` needs a range")
		}
		if high-low == 1 {
			return low, nil
		}
		return draw(d, "randInt", isRandom, low, high-1)
	}
	functions["shuffle"] = func(text string) (string, error) {
		sorted := []rune(text)
		slices.Sort(sorted)
		reversed := slices.Clone(sorted)
		slices.Reverse(reversed)
		if string(sorted) == string(reversed) {
			return text, nil
		}
		return draw(d, "shuffle", isRandom, string(sorted), string(reversed))
	}
	functions["uuidv4"] = func() (string, error) {
		return draw(d, "uuidv4", isRandom, "5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a", "c6c6c6c6-c6c6-46c6-b6c6-c6c6c6c6c6c6")
	}
}

func (d *draws) addKeys(functions template.FuncMap) {
	bcrypt := func(function, password string) (string, error) {
		if len(password) > 72 {
			return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes", nil
		}
		return draw(d, function, "uses a new salt at each render", "$2a$10$"+pattern("q7R", 53), "$2a$10$"+pattern("X0k", 53))
	}
	functions["bcrypt"] = func(password string) (string, error) { return bcrypt("bcrypt", password) }
	functions["htpasswd"] = func(user, password string) (string, error) {
		if strings.Contains(user, ":") {
			return "invalid username: " + user, nil
		}
		hash, err := bcrypt("htpasswd", password)
		return user + ":" + hash, err
	}
	functions["encryptAES"] = func(_, text string) (string, error) {
		if text == "" {
			return "", nil
		}
		first, second := standInBytes(16 + (len(text)/16+1)*16)
		return draw(d, "encryptAES", "uses a new initial vector at each render", first, second)
	}
	functions["genPrivateKey"] = func(kind string) (string, error) {
		switch kind {
		case "", "rsa", "dsa", "ecdsa", "ed25519":
			return draw(d, "genPrivateKey", isNewKey, pem("PRIVATE KEY", "q7R"), pem("PRIVATE KEY", "X0k"))
		}
		return "Unknown type " + kind, nil
	}
	functions["genCA"] = func(_ string, _ int) (certificate, error) { return d.certificate("genCA") }
	functions["genCAWithKey"] = func(_ string, _ int, _ string) (certificate, error) { return d.certificate("genCAWithKey") }
	functions["genSelfSignedCert"] = func(_ string, _, _ []any, _ int) (certificate, error) {
		return d.certificate("genSelfSignedCert")
	}
	functions["genSelfSignedCertWithKey"] = func(_ string, _, _ []any, _ int, _ string) (certificate, error) {
		return d.certificate("genSelfSignedCertWithKey")
	}
	functions["genSignedCert"] = func(_ string, _, _ []any, _ int, _ any) (certificate, error) {
		return d.certificate("genSignedCert")
	}
	functions["genSignedCertWithKey"] = func(_ string, _, _ []any, _ int, _ any, _ string) (certificate, error) {
		return d.certificate("genSignedCertWithKey")
	}
}

func (d *draws) addClock(functions template.FuncMap) {
	original := sprig.TxtFuncMap()
	dateInZone := original["dateInZone"].(func(string, any, string) string)
	ago := original["ago"].(func(any) string)
	durationRound := original["durationRound"].(func(any) string)
	// Formats a time, or the current time where the date is neither a time nor a number.
	format := func(function, layout string, date any, zone string) (string, error) {
		switch zone {
		case "", "UTC":
		case "Local":
			zone = "UTC"
		default:
			return "", d.refuse(function, fmt.Sprintf("depends on the data of the time zone `%s`", zone), "Use UTC.")
		}
		switch date.(type) {
		case time.Time, *time.Time, int64, int, int32:
		default:
			now, err := d.now(function)
			if err != nil {
				return "", err
			}
			date = now
		}
		return dateInZone(layout, date, zone), nil
	}
	functions["now"] = func() (time.Time, error) { return d.now("now") }
	functions["date"] = func(layout string, date any) (string, error) { return format("date", layout, date, "UTC") }
	functions["htmlDate"] = func(date any) (string, error) { return format("htmlDate", "2006-01-02", date, "UTC") }
	functions["htmlDateInZone"] = func(date any, zone string) (string, error) {
		return format("htmlDateInZone", "2006-01-02", date, zone)
	}
	for _, name := range []string{"dateInZone", "date_in_zone"} {
		functions[name] = func(layout string, date any, zone string) (string, error) { return format(name, layout, date, zone) }
	}
	// Returns how long before now a time was.
	since := func(function string, date any) (time.Duration, error) {
		now, err := d.now(function)
		switch date := date.(type) {
		case time.Time:
			return now.Sub(date), err
		case int64:
			return now.Sub(time.Unix(date, 0)), err
		case int:
			return now.Sub(time.Unix(int64(date), 0)), err
		}
		return 0, err
	}
	functions["ago"] = func(date any) (string, error) {
		switch date.(type) {
		case time.Time, int64, int:
			past, err := since("ago", date)
			return past.Round(time.Second).String(), err
		}
		return ago(date), nil
	}
	functions["durationRound"] = func(duration any) (string, error) {
		if _, is := duration.(time.Time); is {
			past, err := since("durationRound", duration)
			return durationRound(int64(past)), err
		}
		return durationRound(duration), nil
	}
}

// The keys of dictionaries, sorted: sprig returns them in the order of Go's maps, which is random.
func sortedDictKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, sortedKeys(dict)...)
	}
	return keys
}

// The values of a dictionary in the order of their keys.
func valuesByKey(dict map[string]any) []any {
	values := []any{}
	for _, key := range sortedKeys(dict) {
		values = append(values, dict[key])
	}
	return values
}

// Reports whether two renders are equal.
func same(a, b *rendered) bool {
	if (a.err == nil) != (b.err == nil) {
		return false
	}
	if a.err != nil {
		return a.err.Error() == b.err.Error()
	}
	return reflect.DeepEqual(a.crds, b.crds) && reflect.DeepEqual(a.documents, b.documents) && reflect.DeepEqual(a.hooks, b.hooks)
}
