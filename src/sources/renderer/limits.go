package main

import (
	"runtime/metrics"
	"time"
)

type limits struct {
	frame     int64
	output    int64
	documents int
	memory    int64
	time      time.Duration
}

// Runs a request and waits for its answer. Nothing can stop a template that runs, so where the time or the memory is
// used up, guard returns an answer that says so, and true: the process has to end.
func (l limits) guard(run func() *answer) (*answer, bool) {
	done := make(chan *answer, 1)
	go func() { done <- run() }()
	deadline := time.NewTimer(l.time)
	defer deadline.Stop()
	sample := time.NewTicker(20 * time.Millisecond)
	defer sample.Stop()
	for {
		select {
		case a := <-done:
			return a, false
		case <-deadline.C:
			return &answer{Error: faultf("limit", "rendering takes more than %v (--timeout)", l.time).
				advise("Look for a template that calls itself without an end.")}, true
		case <-sample.C:
			if used := memory(); used > l.memory {
				return &answer{Error: faultf("limit", "rendering needs more than %d MiB of memory (--max-memory)", l.memory>>20).
					advise("Look for a template that calls itself without an end.")}, true
			}
		}
	}
}

// Returns the bytes of memory that this process holds.
func memory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// Counts the documents of an answer and their bytes.
type counter struct {
	limits
	bytes int64
	count int
}

func (c *counter) add(text string) error {
	c.bytes += int64(len(text))
	c.count++
	if c.bytes > c.output {
		return faultf("limit", "the output has more than %d bytes (--max-output)", c.output)
	}
	if c.count > c.documents {
		return faultf("limit", "the output has more than %d documents (--max-documents)", c.documents)
	}
	return nil
}
