//! Charts and bases as sources: what they render is placed like plain objects, and what cannot be rendered removes
//! nothing.

mod client;
mod faithful;
mod safety;
mod variants;

use std::path::{Path, PathBuf};

use crate::support::programs::{made, skipped};
use crate::support::{Ran, Repo, berth, cluster, fleet_member};

/// A fleet with one chart, whose objects go to all clusters.
pub struct SourceFleet {
    pub repo: Repo,
    programs: tempfile::TempDir,
    /// The renderer that its commands use.
    pub renderer: PathBuf,
}

const FAKE: &str = include_str!("fake_renderer.py");

pub const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
    metadata: {name: shop}\nspec:\n  resourceSelectors: [{group: \"\", version: v1, kind: Namespace, name: shop}]\n  \
    policy: {placementType: PickAll}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";

pub const CONFIG: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  colour: \"{{ .Values.colour }}\"\n";

/// A source of a chart, with more lines of its spec.
pub fn helm_source(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: berth.dev/v1alpha1\nkind: HelmSource\nmetadata: {{name: {name}}}\nspec:\n  path: {path}\n  \
         namespace: shop\n  kubeVersion: \"1.34\"\n{more}"
    )
}

impl SourceFleet {
    /// A published fleet, with the renderer of the tests.
    pub fn fake() -> SourceFleet {
        let programs = tempfile::tempdir().expect("a folder");
        let renderer = fake_renderer(programs.path(), "fake 1");
        SourceFleet::with(renderer, programs)
    }

    /// A published fleet, with the real renderer.
    pub fn real() -> Option<SourceFleet> {
        Some(SourceFleet::with(renderer()?, tempfile::tempdir().expect("a folder")))
    }

    fn with(renderer: PathBuf, programs: tempfile::TempDir) -> SourceFleet {
        let repo = Repo::new();
        for name in ["a", "b"] {
            repo.write(&format!("clusters/{name}.yaml"), fleet_member(name, "prod"));
        }
        repo.write("clusters/c.yaml", cluster("c", &[]));
        repo.write("apps/placement.yaml", PLACEMENT);
        repo.write("apps/web.yaml", helm_source("web", "charts/web", "  values: {colour: red}\n"));
        repo.write("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
        repo.write("charts/web/values.yaml", "colour: white\n");
        repo.write("charts/web/templates/config.yaml", CONFIG);
        repo.commit("start");
        let fleet = SourceFleet { repo, programs, renderer };
        fleet.publish().expect(0);
        fleet
    }

    /// Runs berth in the fleet with its renderer.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_with(&self.renderer.clone(), args)
    }

    /// Runs berth in the fleet with another renderer.
    pub fn run_with(&self, renderer: &Path, args: &[&str]) -> Ran {
        let mut command = berth();
        command.env("BERTH_RENDERER", renderer).current_dir(self.repo.path()).args(args);
        Ran::of(&mut command)
    }

    pub fn publish(&self) -> Ran {
        self.run(&["run", "--once"])
    }

    /// Commits everything and publishes it.
    pub fn commit_and_publish(&self, message: &str) -> Ran {
        self.repo.commit(message);
        self.publish()
    }

    /// The text of a rendered file of cluster `a`.
    pub fn copy(&self, path: &str) -> Option<String> {
        self.repo.files("berth/rendered").remove(&format!("clusters/a/{path}"))
    }

    /// A renderer that gives the same, by another name.
    pub fn other_renderer(&self, identity: &str) -> PathBuf {
        fake_renderer(self.programs.path(), identity)
    }
}

/// Writes the renderer of the tests.
pub fn fake_renderer(folder: &Path, identity: &str) -> PathBuf {
    let path = folder.join(identity.replace(' ', "-"));
    let text = FAKE.replace("\"fake 1\"", &format!("\"{identity}\""));
    crate::support::programs::write_program(&path, &text);
    path
}

/// The program of the real renderer, made once.
pub fn renderer() -> Option<PathBuf> {
    match made(&["ready", "renderer"], "renderer") {
        Ok(program) => Some(program),
        Err(why) => {
            skipped("the renderer", &why);
            None
        }
    }
}
