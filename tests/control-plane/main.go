// Command control-plane runs etcd, kube-apiserver and the controllers of kube-controller-manager
// that tests need in one process, on free loopback ports, with its data in one folder.
//
// When it is ready it prints one line of JSON with the kubeconfig's path and the server's address.
// It stops on SIGTERM or SIGINT, and when its standard input closes if it was asked to watch that,
// so that it never outlives the test that started it. Started again on the same folder, it comes
// back with the same data, the same certificates and, where it is still free, the same port.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// Deadlines, so that whoever waits for this process waits for a bounded time.
const (
	startDeadline = 60 * time.Second
	stopDeadline  = 3 * time.Second
	// HTTP/2 gives clients a second to leave. They are tests: what was answered is in etcd, and the
	// rest may be cut off.
	serverStopDeadline = 100 * time.Millisecond
)

// Deployments make replica sets, which make pods, which need a service account; jobs make pods;
// namespaces empty themselves; objects go with their owners. Nothing runs pods.
const defaultControllers = "deployment-controller,replicaset-controller,job-controller," +
	"namespace-controller,garbage-collector-controller," +
	"serviceaccount-controller,serviceaccount-token-controller"

type settings struct {
	data        string
	port        int
	auditLog    string
	auditLevel  string
	controllers []string
	untilStdin  bool
}

// What is printed once everything answers.
type ready struct {
	Kubeconfig   string `json:"kubeconfig"`
	Server       string `json:"server"`
	Milliseconds int64  `json:"milliseconds"`
}

func main() {
	started := time.Now()
	// A third less processor time until it is ready, for a tenth more memory.
	debug.SetGCPercent(400)
	settings, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	ctx, fail := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		fail(nil)
	}()
	if settings.untilStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			fail(nil)
		}()
	}
	if err := outcome(ctx, run(ctx, fail, settings, started)); err != nil {
		fmt.Fprintf(os.Stderr, "control-plane: %v (its log: %s)\n", err, logFile(settings.data))
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var given settings
	var controllers string
	flags := flag.NewFlagSet("control-plane", flag.ContinueOnError)
	flags.StringVar(&given.data, "data", "", "folder for everything it writes; kept data is used again")
	flags.IntVar(&given.port, "port", 0, "port of the API server; 0 takes the last one of this folder, else a free one")
	flags.StringVar(&given.auditLog, "audit-log", "", "file that gets one JSON line for every request")
	flags.StringVar(&given.auditLevel, "audit-level", "Metadata", "Metadata, Request or RequestResponse")
	flags.StringVar(&controllers, "controllers", defaultControllers, "controllers to run, by their names in kube-controller-manager; empty for none")
	flags.BoolVar(&given.untilStdin, "until-stdin-closes", false, "stop when standard input closes, as it does when the parent dies")
	if err := flags.Parse(args); err != nil {
		return given, err
	}
	if given.data == "" || flags.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "control-plane: -data FOLDER is needed, and nothing but flags")
		return given, errors.New("usage")
	}
	if controllers != "" {
		given.controllers = strings.Split(controllers, ",")
	}
	var err error
	given.data, err = filepath.Abs(given.data)
	return given, err
}

// Starts the parts in order, says so, waits for the end, and stops them in the opposite order.
func run(ctx context.Context, fail context.CancelCauseFunc, settings settings, started time.Time) error {
	if err := os.MkdirAll(settings.data, 0o700); err != nil {
		return err
	}
	if err := logToFile(settings.data); err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()

	etcd, err := startEtcd(starting, settings.data)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer within(stopDeadline, etcd.Server.HardStop)
	go func() {
		if err, open := <-etcd.Err(); open && err != nil {
			fail(fmt.Errorf("etcd: %w", err))
		}
	}()

	listener, err := listen(settings)
	if err != nil {
		return err
	}
	credentials, err := credentialsIn(filepath.Join(settings.data, "pki"))
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	server := "https://" + listener.Addr().String()
	api, err := startAPIServer(starting, fail, settings, etcd.Clients[0].Addr().String(), listener, credentials)
	if err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	defer within(serverStopDeadline, api.stop)
	if err := api.awaitReady(starting); err != nil {
		return err
	}

	kubeconfig := filepath.Join(settings.data, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, credentials, credentials.admin); err != nil {
		return err
	}
	if len(settings.controllers) > 0 {
		stop, err := startControllers(ctx, fail, settings, server, credentials)
		if err != nil {
			return fmt.Errorf("kube-controller-manager: %w", err)
		}
		defer within(stopDeadline, stop)
	}
	if err := api.awaitUsable(starting, settings.controllers); err != nil {
		return err
	}
	if err := markFurnished(settings.data); err != nil {
		return err
	}
	line := ready{Kubeconfig: kubeconfig, Server: server, Milliseconds: time.Since(started).Milliseconds()}
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// How it ended: by a part's own failure, before whatever came of that; on request, whatever that
// interrupted; else as `err` says.
func outcome(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// Runs something that may hang, for so long at most; the process ends soon after anyway, and what
// etcd has answered is in its files.
func within(limit time.Duration, stop func()) {
	done := make(chan struct{})
	go func() {
		stop()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}
