package main

import (
	"context"
	"errors"
	"net/url"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
)

// A single etcd member that survives being killed, not a power cut: it never waits for the disk.
func startEtcd(ctx context.Context, data string) (*embed.Etcd, error) {
	// The peer address is only a name here, since a single member dials nobody.
	loopback := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config := embed.NewConfig()
	config.Dir = filepath.Join(data, "etcd")
	config.Name = "only"
	config.ListenClientUrls = []url.URL{loopback}
	config.AdvertiseClientUrls = []url.URL{loopback}
	config.ListenPeerUrls = []url.URL{loopback}
	config.AdvertisePeerUrls = []url.URL{loopback}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false
	// A lone member need not give others a second to answer.
	config.TickMs, config.ElectionMs = 10, 100
	config.LogLevel = "error"
	config.LogOutputs = []string{logFile(data)}

	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		return nil, errors.Join(errors.New("stopped while starting"), err)
	case <-ctx.Done():
		within(stopDeadline, etcd.Close)
		return nil, ctx.Err()
	}
}
