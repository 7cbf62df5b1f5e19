//! A cluster whose folder another program applies is left alone by berth's own member, and the reverse.

use crate::support::remote::{Fleet, Folder};
use crate::support::removals::managed;
use crate::support::site_fleet::{people, settings, work};
use crate::support::{Ran, berth, run};

fn annotate(fleet: &Fleet, applier: &str) {
    let plain = crate::support::cluster("a", &[("env", "prod")]);
    let annotation = format!("metadata:\n  annotations: {{berth.dev/applier: {applier}}}");
    assert!(plain.contains("metadata:"), "{plain}");
    fleet.people.write("clusters/a.yaml", plain.replacen("metadata:", &annotation, 1));
    fleet.people.commit(applier);
    fleet.push();
    fleet.run_once(&Folder::of(fleet), &["--max-removed-clusters", "100%"]).expect(0);
}

#[test]
fn a_member_leaves_a_folder_to_the_program_that_the_fleet_names() {
    let fleet = Fleet::new();
    let server = Folder::of(&fleet);
    fleet.run_once(&server, &[]).expect(0);
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("one"));
    fleet.edit("two");
    annotate(&fleet, "flux");
    let message = fleet.bare(&["log", "-1", "--format=%B", "refs/berth/clusters/a"]);
    assert!(message.contains("Berth-Applier: flux"), "{message}");
    let refused = fleet.sync_once("a", &server, &[]).expect(5);
    assert!(refused.err.contains("`flux` applies the folder of `a`, not `berth`"), "{}", refused.err);
    assert!(refused.err.contains("hint: change `--applier`"), "{}", refused.err);
    assert_eq!(fleet.value("a").as_deref(), Some("one"), "nothing is applied");
    fleet.sync_once("b", &server, &[]).expect(0);

    // The reverse: a reporter for another program than the fleet names asks no cluster. Nothing listens there.
    let kubeconfig = fleet.root().join("kubeconfig");
    let nowhere = "apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://127.0.0.1:1'}}]\n\
                   contexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {token: x}}]\n\
                   current-context: x\n";
    std::fs::write(&kubeconfig, nowhere).expect("a file");
    let report = |applier: &str| {
        let mut command = berth();
        command.args(["sync", "--once", "--cluster", "a", "--target", "kube", "--applier", applier]);
        command.arg("--kubeconfig").arg(&kubeconfig).arg("--remote").arg(fleet.bare_path());
        Ran::of(command.arg("--repo").arg(fleet.root().join("copies/reporter")))
    };
    let refused = report("argocd").expect(5);
    assert!(refused.err.contains("`flux` applies the folder of `a`, not `argocd`"), "{}", refused.err);
    report("flux").expect(6);
    annotate(&fleet, "berth");
    let message = fleet.bare(&["log", "-1", "--format=%B", "refs/berth/clusters/a"]);
    assert!(!message.contains("Berth-Applier"), "{message}");
    fleet.sync_once("a", &server, &[]).expect(0);
    assert_eq!(fleet.value("a").as_deref(), Some("two"));
    let refused = report("flux").expect(5);
    assert!(refused.err.contains("`berth` applies the folder of `a`, not `flux`"), "{}", refused.err);
}

#[test]
fn a_cluster_without_its_applier_is_berths_again_though_its_folder_stays_the_same() {
    let repo = people("flux", &work(&[settings()]));
    let said = || {
        run(&["run", "--once", "--repo", repo.arg()]).expect(0);
        let message = repo.git(&["log", "-1", "--format=%B", "refs/berth/clusters/oslo"]);
        (message, repo.git(&["rev-parse", "refs/berth/clusters/oslo^{tree}"]))
    };
    let (first, folder) = said();
    assert!(first.contains("Berth-Applier: flux"), "{first}");
    repo.write("clusters/oslo.yaml", managed("oslo", ""));
    repo.commit("berth applies it");
    let (second, same) = said();
    assert_eq!(same, folder);
    assert!(!second.contains("Berth-Applier"), "{second}");
}
