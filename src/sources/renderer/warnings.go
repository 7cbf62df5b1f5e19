package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// Collects what the libraries log: for Helm a dropped value is a warning, and a hook that it does not know is a note.
type logCapture struct {
	mutex sync.Mutex
	lines []string
	text  bytes.Buffer
}

func captureLog() *logCapture {
	c := &logCapture{}
	slog.SetDefault(slog.New(c))
	log.SetOutput(&c.text)
	return c
}

// Ends the capture and returns the lines, sorted and each once: their order is random.
func (c *logCapture) stop() []string {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	for _, line := range strings.Split(c.text.String(), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			c.lines = append(c.lines, line)
		}
	}
	slices.Sort(c.lines)
	return append([]string{}, slices.Compact(c.lines)...)
}

func (c *logCapture) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo
}

func (c *logCapture) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.Key + "=" + a.Value.String()
		return true
	})
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.lines = append(c.lines, line)
	return nil
}

func (c *logCapture) WithAttrs([]slog.Attr) slog.Handler { return c }
func (c *logCapture) WithGroup(string) slog.Handler      { return c }
