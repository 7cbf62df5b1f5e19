package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
)

func logFile(data string) string {
	return filepath.Join(data, "control-plane.log")
}

// Sends the log of every Kubernetes part to a file; standard error is for what ends the process.
func logToFile(data string) error {
	file, err := os.OpenFile(logFile(data), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	klog.SetOutput(file)
	return nil
}

// Listens on the port asked for, else on the one this folder had last, else on any free one. The
// listener itself is handed on, so that nobody else can take the port in between.
func listen(settings settings) (net.Listener, error) {
	last := filepath.Join(settings.data, "port")
	listener, err := listenOn(settings.port, last)
	if err != nil {
		return nil, err
	}
	return listener, rememberPort(last, listener)
}

func listenOn(port int, last string) (net.Listener, error) {
	if port == 0 {
		if text, err := os.ReadFile(last); err == nil {
			if kept, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", kept)); err == nil {
					return listener, nil
				}
			}
		}
	}
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func rememberPort(last string, listener net.Listener) error {
	port := listener.Addr().(*net.TCPAddr).Port
	return os.WriteFile(last, []byte(strconv.Itoa(port)), 0o600)
}

// Whether this folder's data holds the roles and priority classes of this build's Kubernetes.
func furnished(data string) bool {
	text, err := os.ReadFile(furnishedFile(data))
	return err == nil && string(text) == version.Get().GitVersion
}

func markFurnished(data string) error {
	return os.WriteFile(furnishedFile(data), []byte(version.Get().GitVersion), 0o600)
}

func furnishedFile(data string) string {
	return filepath.Join(data, "furnished")
}
