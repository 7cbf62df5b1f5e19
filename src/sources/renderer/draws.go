package main

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"
)

// The draws of one render.
//
// A chart may draw a random value that it then drops: `default (randAlphaNum 16) .Values.password` draws always. So a draw
// is no error. Each draw has four stand-ins instead of a random value. The chart is rendered once with the first stand-in
// of each draw, and for each other stand-in once more: where these renders differ, the output depends on a draw. The
// stand-ins of a draw differ in each character, in their order and in their remainders; those of two draws differ too.
// A condition that hardly any draw fulfils, such as "contains a q", may fit none of them: the output is then that of the
// usual case. It is still the same at each render, and has no random value.
//
// Then some of the draws take the other stand-in, until one draw is found that alone changes the output, and one more
// render fails at this draw, which gives its place.
type draws struct {
	// The draws below this number take the stand-in `other`, and the others the first one.
	below int
	other int
	// The draw with this number fails.
	failing int
	// The number of draws so far.
	count int
	// `lookup` finds nothing, instead of failing.
	emptyLookup bool
	// The call that failed.
	refused *refusal
}

const standIns = 4

// A call that cannot have a pure result.
type refusal struct {
	function string
	reason   string
	advice   string
}

func (r *refusal) Error() string { return fmt.Sprintf("`%s` %s", r.function, r.reason) }

func (d *draws) refuse(function, reason, advice string) error {
	d.refused = &refusal{function, reason, advice}
	return d.refused
}

// Makes one draw. The value is that of the draw's number and its stand-in.
func draw[T any](d *draws, function, reason string, value func(number, standIn int) T) (T, error) {
	number := d.count
	d.count++
	if number == d.failing {
		var none T
		return none, d.refuse(function, reason, "")
	}
	if number < d.below {
		return value(number, d.other), nil
	}
	return value(number, 0), nil
}

// Returns a number that two numbers decide.
func mix(a, b int) int {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %d", a, b)
	return int(sum.Sum64() >> 2)
}

// Returns a stand-in of a number below a limit. The last two are the smallest and the largest one.
func standInNumber(limit, number, standIn int) int {
	first := mix(number, -1) % limit
	return []int{first, (first + 1) % limit, 0, limit - 1}[standIn]
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// Returns a stand-in of a text of n characters.
func standInText(alphabet string, n, number, standIn int) string {
	text := make([]byte, n)
	for i := range text {
		first := mix(number, i)
		index := []int{first, first + 1, first + len(alphabet)/2, mix(^number, i)}[standIn]
		text[i] = alphabet[index%len(alphabet)]
	}
	return string(text)
}

// Returns a stand-in of the base64 of n bytes.
func standInBytes(n, number, standIn int) string {
	return base64.StdEncoding.EncodeToString([]byte(standInText(digits+letters, n, number, standIn)))
}

// Returns a stand-in of a shuffled text.
func standInOrder(text string, number, standIn int) string {
	characters := []rune(text)
	slices.Sort(characters)
	switch standIn {
	case 1:
		slices.Reverse(characters)
	case 2:
		characters = append(characters[1:], characters[0])
	case 3:
		generator := rand.New(rand.NewPCG(uint64(number), 0))
		generator.Shuffle(len(characters), func(i, j int) { characters[i], characters[j] = characters[j], characters[i] })
	}
	return string(characters)
}

// Returns a stand-in of the current time.
func standInTime(standIn int) time.Time {
	return []time.Time{
		time.Date(2001, 2, 3, 4, 5, 6, 700_000_000, time.UTC), time.Date(2092, 11, 30, 21, 54, 53, 200_000_000, time.UTC),
		time.Date(2002, 3, 4, 5, 6, 7, 800_000_000, time.UTC), time.Date(1969, 7, 20, 20, 17, 40, 1, time.UTC),
	}[standIn]
}

// Stands in each key and certificate that is a stand-in.
const standInMark = "stand+in"

// Returns a stand-in of a key or certificate. The length of a real one is not known, so those of stand-ins differ.
func standInPEM(kind string, number, standIn int) string {
	text := standInText(digits+letters, 50+standIn, number, standIn)
	return fmt.Sprintf("-----BEGIN %s-----\n%s%s\n-----END %s-----\n", kind, standInMark, text, kind)
}

// Refuses a render whose output depends on a draw, at the place of the draw.
func (h *helmRender) refuseDraws(first *rendered) error {
	for other := 1; other < standIns; other++ {
		all := h.execute(draws{failing: -1, below: math.MaxInt, other: other})
		if same(first, all) {
			continue
		}
		if again := h.execute(draws{failing: -1}); !same(first, again) {
			return h.unstable(first, again)
		}
		// With the other stand-ins below `low` the output is the first one, with those below `high` it is not.
		low, high := 0, max(first.draws.count, all.draws.count)
		for high-low > 1 {
			middle := (low + high) / 2
			if same(first, h.execute(draws{failing: -1, below: middle, other: other})) {
				low = middle
			} else {
				high = middle
			}
		}
		failed := h.execute(draws{failing: low, below: low, other: other})
		if failed.draws.refused != nil && failed.err != nil {
			return failed.err
		}
		return h.unstable(first, all)
	}
	return nil
}

// Reports whether two renders are equal.
func same(a, b *rendered) bool {
	if (a.err == nil) != (b.err == nil) {
		return false
	}
	if a.err != nil {
		return a.err.Error() == b.err.Error()
	}
	return slices.Equal(a.crds, b.crds) && slices.Equal(a.documents, b.documents) &&
		reflect.DeepEqual(a.hooks, b.hooks)
}
