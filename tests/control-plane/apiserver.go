package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	rbac "k8s.io/kubernetes/pkg/registry/rbac/rest"
	scheduling "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// A running kube-apiserver.
type apiServer struct {
	client kubernetes.Interface
	stop   func()
}

func startAPIServer(ctx context.Context, fail context.CancelCauseFunc, settings settings, etcd string, listener net.Listener, credentials credentials) (*apiServer, error) {
	// Kubernetes' own parts watch deprecated kinds; the warnings are not for us.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	chosen, err := apiServerOptions(settings, etcd, listener, credentials)
	if err != nil {
		return nil, err
	}
	if err := chosen.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, err
	}
	completed, err := chosen.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, err
	}
	if furnished(settings.data) {
		// These wait a second before they look whether what they make is there.
		config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(rbac.PostStartHookName, scheduling.PostStartHookName)
	}
	whole, err := config.Complete()
	if err != nil {
		return nil, err
	}
	chain, err := app.CreateServerChain(whole)
	if err != nil {
		return nil, err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(chain.GenericAPIServer.LoopbackClientConfig)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := prepared.Run(running); err != nil {
			fail(fmt.Errorf("kube-apiserver: %w", err))
		}
	}()
	return &apiServer{client: client, stop: func() { cancel(); <-done }}, nil
}

func apiServerOptions(settings settings, etcd string, listener net.Listener, credentials credentials) (*options.ServerRunOptions, error) {
	chosen := options.NewServerRunOptions()
	chosen.Etcd.StorageConfig.Transport.ServerList = []string{"http://" + etcd}
	chosen.SecureServing.Listener = listener
	chosen.SecureServing.BindAddress = net.IPv4(127, 0, 0, 1)
	chosen.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	chosen.SecureServing.ServerCert.CertKey.CertFile = credentials.server.cert
	chosen.SecureServing.ServerCert.CertKey.KeyFile = credentials.server.key
	chosen.Authentication.ClientCert.ClientCA = credentials.authority.cert
	chosen.Authentication.ServiceAccounts.Issuers = []string{"https://kubernetes.default.svc"}
	chosen.Authentication.ServiceAccounts.KeyFiles = []string{credentials.tokens}
	chosen.ServiceAccountSigningKeyFile = credentials.tokens
	chosen.Authorization.Modes = []string{"RBAC"}
	chosen.ServiceClusterIPRanges = "10.0.0.0/24"
	chosen.AllowPrivileged = true
	// A loopback address may not be the endpoint of a service.
	chosen.EndpointReconcilerType = "none"
	chosen.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	if settings.auditLog == "" {
		return chosen, nil
	}
	policy := filepath.Join(settings.data, "audit-policy.yaml")
	chosen.Audit.PolicyFile = policy
	chosen.Audit.LogOptions.Path = settings.auditLog
	return chosen, os.WriteFile(policy, []byte(auditPolicy(settings.auditLevel)), 0o600)
}

// Every request once, when it was answered (watches when they begin, too), but not what the server
// asks of itself.
func auditPolicy(level string) string {
	return "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n" +
		"- {level: None, users: [\"system:apiserver\"]}\n- level: " + level + "\n"
}

// Waits until the server says that it is ready.
func (server *apiServer) awaitReady(ctx context.Context) error {
	return await(ctx, func() error {
		return server.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// Waits for the default namespace and, where the controller for it runs, its service account,
// without which no pod can be created.
func (server *apiServer) awaitUsable(ctx context.Context, controllers []string) error {
	err := await(ctx, func() error {
		_, err := server.client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	if err != nil || !slices.Contains(controllers, "serviceaccount-controller") {
		return err
	}
	return await(ctx, func() error {
		_, err := server.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func await(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
