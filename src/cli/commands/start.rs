//! The first steps. `berth init [DIR]`: creates a fleet repository. `berth demo`: the whole loop on this machine.
//!
//! The demo uses the code of `run` and `sync`, and the commands `plan`, `run` and `status` themselves. It has a fleet
//! repository of five clusters and three dialects, members with folders as targets, a change as in a pull request,
//! and an accident that the gate holds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser as _;

use super::Cli;
use super::evaluate::decisions_table;
use super::sync::DEFAULT_FLEET;
use crate::output::changes;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use crate::process::files::write;
use berth_base::diag::{Pos, Severity};
use berth_base::model::Timestamp;
use berth_engine::gate::HeldRecord;
use berth_engine::gate::messages::ALLOW_DELETE;
use berth_git::{Identity, Repo};
use berth_hub::daemon::{PassOutcome, PassResult, Settings, pass};
use berth_hub::inputs::{PassInputs, Search};
use berth_hub::publish;
use berth_member::sync::backends::folder::FolderBackend;
use berth_member::sync::local_overrides::LocalOverrides;
use berth_member::sync::{Options, cluster_folder, status, sync_once};

/// Start a fleet repository
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth init fleet && cd fleet && berth decide")]
pub(crate) struct InitArgs {
    /// Folder of the new fleet
    #[arg(default_value = ".", value_name = "DIR")]
    dir: PathBuf,
}

/// The files of a new fleet, by path.
const NEW_FLEET: &[(&str, &str)] = &[
    ("berth.yaml", include_str!("../../../fixtures/init/berth.yaml")),
    ("README.md", include_str!("../../../fixtures/init/README.md")),
    ("clusters/oslo.yaml", include_str!("../../../fixtures/init/clusters/oslo.yaml")),
    ("clusters/turin.yaml", include_str!("../../../fixtures/init/clusters/turin.yaml")),
    ("apps/hello/namespace.yaml", include_str!("../../../fixtures/init/apps/hello/namespace.yaml")),
    ("apps/hello/config.yaml", include_str!("../../../fixtures/init/apps/hello/config.yaml")),
];

/// Returns the evidence of an existing fleet in the folder, with its place.
fn existing_fleet(dir: &Path) -> Option<String> {
    if !dir.is_dir() {
        return None;
    }
    let inputs = PassInputs::folder(dir, Timestamp::now(), None, &Search::leniently()).ok()?;
    let (loaded, _, diagnostics) = inputs.decide();
    let fleet = &loaded.fleet;
    let cluster = fleet.clusters.iter().next();
    let cluster = cluster.map(|(name, it)| (format!("cluster {name}"), it.origins.first().cloned()));
    let placement =
        fleet.placements.iter().next().map(|(key, it)| (key.to_string(), Some(it.origin.clone())));
    let place = |at: Option<Pos>| at.map(|at| format!(" in {at}")).unwrap_or_default();
    if let Some((what, at)) = cluster.or(placement) {
        return Some(format!("already describes a fleet: {what}{}", place(at)));
    }
    let fault = diagnostics.iter().find(|one| one.severity == Severity::Error)?;
    let at = place(fault.at.clone());
    Some(format!("may describe a fleet already, in a file that cannot be read{at}: {}", fault.message))
}

pub(crate) fn cmd_init(args: &InitArgs, ui: &Ui) -> Outcome {
    let there: Vec<&str> =
        NEW_FLEET.iter().map(|(path, _)| *path).filter(|path| args.dir.join(path).exists()).collect();
    if !there.is_empty() {
        let message = format!("{} already has {}", args.dir.display(), there.join(", "));
        return Err(CommandError::new(Exit::Usage, message).hint("name another folder; nothing was written"));
    }
    if let Some(found) = existing_fleet(&args.dir) {
        let message = format!("{} {found}", args.dir.display());
        return Err(CommandError::new(Exit::Usage, message).hint(
            "check the fleet with `berth validate`, add clusters with `berth join`, or name a new folder; \
             nothing was written",
        ));
    }
    for (path, text) in NEW_FLEET {
        write(&args.dir.join(path), text)?;
    }
    if !args.dir.join(".git").exists() {
        Repo::init(&args.dir)?;
    }
    ui.status(&format!(
        "started a fleet repository in {}\nnext: look at the files, `git add -A && git commit`, then \
         `berth decide` and `berth run --once`",
        args.dir.display()
    ));
    Ok(Exit::Done)
}

/// Show the whole loop on this machine
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth demo\n  berth demo /tmp/berth-demo")]
pub(crate) struct DemoArgs {
    /// Folder of the demo: a new one, or that of an earlier demo
    #[arg(default_value = "berth-demo", value_name = "DIR")]
    dir: PathBuf,
}

/// The mark of a demo's folder: a second demo may replace it, and nothing else.
const MARK: &str = ".berth-demo";

const CLUSTERS: [&str; 5] = ["bergen", "graz", "lisbon", "oslo", "turin"];

/// The fleet's files, by path.
const DEMO_FLEET: &[(&str, &str)] = &[
    ("berth.yaml", include_str!("../../../fixtures/demo/berth.yaml")),
    ("clusters/kubefed.yaml", include_str!("../../../fixtures/demo/clusters/kubefed.yaml")),
    ("clusters/kubefleet.yaml", include_str!("../../../fixtures/demo/clusters/kubefleet.yaml")),
    ("clusters/ocm.yaml", include_str!("../../../fixtures/demo/clusters/ocm.yaml")),
    ("platform/audit.yaml", include_str!("../../../fixtures/demo/platform/audit.yaml")),
    ("platform/monitoring.yaml", include_str!("../../../fixtures/demo/platform/monitoring.yaml")),
    ("shop/namespace.yaml", include_str!("../../../fixtures/demo/shop/namespace.yaml")),
    ("shop/placement.yaml", include_str!("../../../fixtures/demo/shop/placement.yaml")),
    ("shop/settings.yaml", include_str!("../../../fixtures/demo/shop/settings.yaml")),
    ("shop/web.yaml", WEB),
];

const WEB: &str = include_str!("../../../fixtures/demo/shop/web.yaml");

/// The change: another placement, and an override for another cluster.
const EDITS: [(&str, &str); 2] = [
    ("      matchLabels:\n        tier: prod\n", "      matchLabels:\n        region: south\n"),
    (
        "    - clusterName: oslo\n      clusterOverrides:\n        - path: /spec/replicas\n          value: 5\n",
        "    - clusterName: turin\n      clusterOverrides:\n        - path: /spec/template/spec/containers/0/image\n          value: registry.example.com/web:1.5.0-rc1\n",
    ),
];

/// The accident: a selector for a label that no cluster has.
const SLIP: [(&str, &str); 1] = [("        region: south\n", "        regoin: south\n")];

pub(crate) fn cmd_demo(args: &DemoArgs, ui: &Ui) -> Outcome {
    let start = Instant::now();
    let demo = Demo::start(&args.dir, ui)?;
    demo.first_publication()?;
    demo.change()?;
    demo.accident()?;
    demo.where_next(start.elapsed())?;
    Ok(Exit::Done)
}

struct Demo<'u> {
    dir: PathBuf,
    fleet: PathBuf,
    repo: Repo,
    settings: Settings,
    now: Timestamp,
    ui: &'u Ui,
}

impl<'u> Demo<'u> {
    fn start(dir: &Path, ui: &'u Ui) -> Result<Demo<'u>, CommandError> {
        make_way(dir, ui)?;
        let fleet = dir.join("fleet");
        write(&dir.join(MARK), "made by `berth demo`, which may replace this folder\n")?;
        for (path, text) in DEMO_FLEET {
            write(&fleet.join(path), text)?;
        }
        let repo = Repo::init(&fleet)?;
        // The commands at the end make commits, perhaps on a machine where Git knows nobody.
        repo.set_author("Your Name", "you@example.com")?;
        // The edits of the demo follow in minutes, and none is dated later than now.
        let now = Timestamp::from_second(ui.now().as_second() - 180).unwrap_or_default();
        repo.commit_all("Start the fleet\n", &person(), now.as_second())?;
        let settings = Settings::of(fleet.clone());
        Ok(Demo { dir: dir.to_owned(), fleet, repo, settings, now, ui })
    }

    fn first_publication(&self) -> Result<(), CommandError> {
        self.heading("1. A fleet repository: five clusters, described for three systems");
        for (path, _) in DEMO_FLEET {
            self.ui.out(&format!("   fleet/{path}"));
        }
        self.heading("2. berth run: decide, render, commit to berth/rendered");
        let passed = self.pass()?;
        let current = publish::read_current(&self.repo, &self.settings.refs.rendered)?;
        let decisions = current.map(|current| current.state.decisions).unwrap_or_default();
        self.ui.out(&decisions_table(&decisions, self.ui));
        self.say_published(&passed);
        self.heading("3. berth sync: each member applies its own folder");
        self.sync_all()
    }

    fn change(&self) -> Result<(), CommandError> {
        self.heading(
            "4. A change, as a pull request brings it: web goes south, and turin tries a release candidate",
        );
        let edited = self.edit(WEB, &EDITS, "Move web to the south, try 1.5.0 in turin\n", 60)?;
        self.heading("5. berth plan: what it does and why, before it is merged");
        self.berth("plan", &[])?;
        self.heading("6. Merged: berth publishes, the members follow");
        let passed = self.pass()?;
        self.say_published(&passed);
        self.sync_all()?;
        // This pass summarises the members' statuses.
        self.pass()?;
        self.heading("7. berth status");
        self.berth("status", &[])?;
        self.heading("8. An accident: a slip in one label, and web would leave every cluster");
        self.edit(&edited, &SLIP, "Tidy up the selector\n", 120)?;
        Ok(())
    }

    fn accident(&self) -> Result<(), CommandError> {
        self.heading("9. berth plan sees it in the pull request");
        self.berth("plan", &[])?;
        self.heading("10. Merged all the same: berth run holds it, and nobody loses anything");
        self.berth("run", &["--once"])?;
        self.ui.out("");
        self.sync_all()
    }

    /// Edits the file of `web`, shows the difference and commits it.
    fn edit(
        &self,
        before: &str,
        edits: &[(&str, &str)],
        message: &str,
        seconds: i64,
    ) -> Result<String, CommandError> {
        let mut text = before.to_owned();
        for (from, to) in edits {
            if !text.contains(from) {
                return Err(CommandError::new(Exit::Bug, "the demo's files no longer fit its edits"));
            }
            text = text.replacen(from, to, 1);
        }
        write(&self.fleet.join("shop/web.yaml"), &text)?;
        self.repo.commit_all(message, &person(), self.now.as_second() + seconds)?;
        self.ui.out(&changes::coloured(before, &text, "shop/web.yaml", self.ui));
        Ok(text)
    }

    /// Runs a command as a user would. Its exit code is shown, and does not end the demo.
    fn berth(&self, command: &str, flags: &[&str]) -> Result<(), CommandError> {
        let words = ["berth", command, "--repo"].into_iter().map(OsString::from);
        let words = words.chain([self.fleet.clone().into()]).chain(flags.iter().map(OsString::from));
        let cli = Cli::try_parse_from(words).map_err(|error| CommandError::usage(error.to_string()))?;
        super::dispatch(&cli, self.ui).map(|_| ())
    }

    fn pass(&self) -> Result<PassResult, CommandError> {
        let passed = pass(&self.settings, self.ui.now())?;
        self.ui.diagnostics(&passed.diagnostics);
        Ok(passed)
    }

    fn sync_all(&self) -> Result<(), CommandError> {
        for cluster in CLUSTERS {
            let fetched = cluster_folder::fetch(&self.repo, &self.settings.refs, cluster)?;
            let mut target = FolderBackend::open(&self.dir.join("members").join(cluster))?;
            let options = Options { fleet: DEFAULT_FLEET.to_owned(), ..Options::default() };
            let outcome = sync_once(&fetched, &LocalOverrides::default(), &mut target, &options)?;
            let now = self.ui.now();
            let report = status::of(cluster, outcome.applied.clone(), now, 600);
            status::write(&self.repo, &self.settings.refs, &report, now)?;
            self.ui.out(&format!(
                "   {cluster:<8} {} written, {} removed, {} in total",
                outcome.written, outcome.pruned, outcome.applied.objects
            ));
        }
        Ok(())
    }

    fn say_published(&self, passed: &PassResult) {
        if let PassOutcome::Published { commit, seq } = passed.outcome {
            self.ui.out(&format!("   published {} as number {seq}", commit.short()));
        }
    }

    fn where_next(&self, took: std::time::Duration) -> Result<(), CommandError> {
        self.heading(&format!("That took {:.1} s. Where to look next", took.as_secs_f64()));
        let (fleet, members) = (self.fleet.display(), self.dir.join("members"));
        let processed = publish::read_processed(&self.repo, &self.settings.refs)?;
        let held = processed.iter().flat_map(|processed| &processed.held);
        let held = held.filter_map(|line| line.parse::<HeldRecord>().ok()).next();
        let approval = held.map(|held| format!("{ALLOW_DELETE}: {}", held.digest)).unwrap_or_default();
        let program =
            std::env::current_exe().map_or_else(|_| "berth".to_owned(), |path| path.display().to_string());
        self.ui.out(&format!(
            "   git -C {fleet} log --stat berth/rendered   # every generated commit\n   \
             {program} explain web --cluster turin --repo {fleet}   # why it is picked no longer, and what would change that\n   \
             {program} ui --repo {fleet}   # the fleet as a page, until Ctrl-C\n   \
             ls -R {members}   # what the members have\n\n   \
             # Reject the accident.\n   \
             git -C {fleet} revert --no-edit HEAD\n   \
             {program} run --once --repo {fleet}   # nothing was removed, and nothing changes\n\n   \
             # Then make an edit of your own, here a new version of web.\n   \
             sed -i.old 's/web:1.4.0/web:1.6.0/' {fleet}/shop/web.yaml && rm {fleet}/shop/web.yaml.old\n   \
             git -C {fleet} commit -am 'web 1.6.0'\n   \
             {program} plan --diff --repo {fleet}   # not in turin, whose override names another\n   \
             {program} run --once --repo {fleet}\n   \
             {program} sync --once --repo {fleet} --cluster graz --target dir:{members}/graz\n\n   \
             # Or, instead of all that, approve the accident, and web leaves its clusters.\n   \
             git -C {fleet} commit --allow-empty -m 'web may go' -m '{approval}'\n   \
             {program} plan --diff --repo {fleet}\n   \
             {program} run --once --repo {fleet}\n   \
             for member in graz lisbon turin; do {program} sync --once --repo {fleet} --cluster $member \
             --target dir:{members}/$member; done",
            members = members.display()
        ));
        Ok(())
    }

    fn heading(&self, text: &str) {
        self.ui.out(&format!("\n{}\n", self.ui.tint(text, Tone::Strong)));
    }
}
/// Returns the author of the demo's edits.
fn person() -> Identity {
    Identity { name: "Ann Author".to_owned(), email: "ann@example.com".to_owned(), ..Identity::default() }
}

/// Removes an earlier demo. Refuses any other folder.
fn make_way(dir: &Path, ui: &Ui) -> Result<(), CommandError> {
    match dir.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(CommandError::io(format!("looking at {}", dir.display()), &error)),
        Ok(metadata) if metadata.is_dir() && dir.join(MARK).is_file() => {
            ui.status(&format!("replacing the earlier demo in {}", dir.display()));
            std::fs::remove_dir_all(dir).map_err(|error| {
                CommandError::io(format!("removing the earlier demo {}", dir.display()), &error)
            })
        }
        Ok(_) => {
            let message = format!("{} exists and is not an earlier demo", dir.display());
            Err(CommandError::usage(message).hint("name another folder: `berth demo DIR`"))
        }
    }
}
