package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
)

// Runs the chosen controllers as kube-controller-manager does, without leader election and
// without a port of its own. Gives what stops them.
func startControllers(ctx context.Context, fail context.CancelCauseFunc, settings settings, server string, credentials credentials) (func(), error) {
	kubeconfig := filepath.Join(settings.data, "controllers.kubeconfig")
	if err := writeKubeconfig(kubeconfig, server, credentials, credentials.controllers); err != nil {
		return nil, err
	}
	chosen, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, err
	}
	chosen.Generic.Controllers = settings.controllers
	chosen.Generic.LeaderElection.LeaderElect = false
	chosen.Generic.ClientConnection.Kubeconfig = kubeconfig
	// Tests wait for controllers; the usual 20 requests a second would be what they wait for.
	chosen.Generic.ClientConnection.QPS = 1000
	chosen.Generic.ClientConnection.Burst = 2000
	chosen.SecureServing.BindPort = 0
	chosen.SAController.ServiceAccountKeyFile = credentials.tokens
	chosen.SAController.RootCAFile = credentials.authority.cert

	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	config, err := chosen.Config(ctx, known, disabled, aliases)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := app.Run(running, config.Complete()); err != nil && running.Err() == nil {
			fail(fmt.Errorf("kube-controller-manager: %w", err))
		}
	}()
	return func() { cancel(); <-done }, nil
}
