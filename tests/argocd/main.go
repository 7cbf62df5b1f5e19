// Argo CD's program with the parts alone that tests run: it stands in for cmd/main.go of the module.
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	applicationsets "github.com/argoproj/argo-cd/v3/cmd/argocd-applicationset-controller/commands"
	passwords "github.com/argoproj/argo-cd/v3/cmd/argocd-git-ask-pass/commands"
	repositories "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/argoproj/argo-cd/v3/common"
)

func main() {
	parts := map[string]func() *cobra.Command{
		common.CommandApplicationController:    controller.NewCommand,
		common.CommandApplicationSetController: applicationsets.NewCommand,
		common.CommandGitAskPass:               passwords.NewCommand,
		common.CommandRepoServer:               repositories.NewCommand,
	}
	name := filepath.Base(os.Args[0])
	// git calls the program so that it tells a password.
	if asked := os.Getenv("ARGOCD_BINARY_NAME"); asked != "" {
		name = asked
	}
	part, known := parts[name]
	if !known {
		panic("this program has no part " + name)
	}
	if part().Execute() != nil {
		os.Exit(1)
	}
}
