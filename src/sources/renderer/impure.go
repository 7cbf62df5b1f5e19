package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// The functions that replace those of Helm whose result is not a function of their arguments.

const (
	isRandom  = "is random"
	isClock   = "reads the clock"
	isNewKey  = "makes a new key or certificate at each render"
	isCluster = "reads the cluster"
)

// A certificate and its key, as templates read those of sprig.
type certificate struct {
	Cert string
	Key  string
}

func (d *draws) certificate(function string) (certificate, error) {
	return draw(d, function, isNewKey, func(number, standIn int) certificate {
		return certificate{standInPEM("CERTIFICATE", number, standIn), standInPEM("RSA PRIVATE KEY", number, standIn)}
	})
}

func (d *draws) now(function string) (time.Time, error) {
	return draw(d, function, isClock, func(_, standIn int) time.Time { return standInTime(standIn) })
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
	for name, alphabet := range map[string]string{
		"randAlphaNum": digits + letters, "randAlpha": letters, "randNumeric": digits, "randAscii": digits + letters,
	} {
		functions[name] = func(n int) (string, error) {
			if n <= 0 {
				return "", nil
			}
			return draw(d, name, isRandom, func(number, standIn int) string { return standInText(alphabet, n, number, standIn) })
		}
	}
	functions["randBytes"] = func(n int) (string, error) {
		if n <= 0 {
			return "", nil
		}
		return draw(d, "randBytes", isRandom, func(number, standIn int) string { return standInBytes(n, number, standIn) })
	}
	functions["randInt"] = func(low, high int) (int, error) {
		if high <= low {
			return 0, fmt.Errorf("`randInt` needs a range")
		}
		if high-low == 1 {
			return low, nil
		}
		return draw(d, "randInt", isRandom, func(number, standIn int) int { return low + standInNumber(high-low, number, standIn) })
	}
	functions["shuffle"] = func(text string) (string, error) {
		if strings.Trim(text, text[:min(len(text), 1)]) == "" {
			return text, nil
		}
		return draw(d, "shuffle", isRandom, func(number, standIn int) string { return standInOrder(text, number, standIn) })
	}
	functions["uuidv4"] = func() (string, error) {
		return draw(d, "uuidv4", isRandom, func(number, standIn int) string {
			hex := standInText("0123456789abcdef", 30, number, standIn)
			return fmt.Sprintf("%s-%s-4%s-a%s-%s", hex[:8], hex[8:12], hex[12:15], hex[15:18], hex[18:])
		})
	}
}

func (d *draws) addKeys(functions template.FuncMap) {
	bcrypt := func(function, password string) (string, error) {
		if len(password) > 72 {
			return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes", nil
		}
		return draw(d, function, "uses a new salt at each render", func(number, standIn int) string {
			return "$2a$10$" + standInText(digits+letters, 53, number, standIn)
		})
	}
	functions["bcrypt"] = func(password string) (string, error) { return bcrypt("bcrypt", password) }
	functions["htpasswd"] = func(user, password string) (string, error) {
		if strings.Contains(user, ":") {
			return "invalid username: " + user, nil
		}
		hash, err := bcrypt("htpasswd", password)
		return user + ":" + hash, err
	}
	original := sprig.TxtFuncMap()
	// The texts behind the stand-ins of encryptAES.
	decrypted := map[string]string{}
	functions["encryptAES"] = func(_, text string) (string, error) {
		if text == "" {
			return "", nil
		}
		encrypted, err := draw(d, "encryptAES", "uses a new initial vector at each render", func(number, standIn int) string {
			return standInBytes(16+(len(text)/16+1)*16, number, standIn)
		})
		decrypted[encrypted] = text
		return encrypted, err
	}
	decryptAES := original["decryptAES"].(func(string, string) (string, error))
	functions["decryptAES"] = func(password, encrypted string) (string, error) {
		if text, is := decrypted[encrypted]; is {
			return text, nil
		}
		return decryptAES(password, encrypted)
	}
	functions["genPrivateKey"] = func(kind string) (string, error) {
		switch kind {
		case "", "rsa", "dsa", "ecdsa", "ed25519":
			return draw(d, "genPrivateKey", isNewKey, func(number, standIn int) string {
				return standInPEM("PRIVATE KEY", number, standIn)
			})
		}
		return "Unknown type " + kind, nil
	}
	// The function of sprig checks the certificate, which a stand-in would not pass. Its result has a type of sprig.
	buildCustomCert := reflect.ValueOf(original["buildCustomCert"])
	functions["buildCustomCert"] = func(cert, key string) (any, error) {
		decodedCert, failure := base64.StdEncoding.DecodeString(cert)
		decodedKey, otherFailure := base64.StdEncoding.DecodeString(key)
		isStandIn := bytes.Contains(decodedCert, []byte(standInMark)) || bytes.Contains(decodedKey, []byte(standInMark))
		if failure == nil && otherFailure == nil && isStandIn {
			return certificate{string(decodedCert), string(decodedKey)}, nil
		}
		results := buildCustomCert.Call([]reflect.Value{reflect.ValueOf(cert), reflect.ValueOf(key)})
		err, _ := results[1].Interface().(error)
		return results[0].Interface(), err
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
