//! Small fleets in which passes with memories once came to something else, or to nothing at all.

use berth_base::model::Timestamp;
use berth_engine::gate::Limits;
use berth_git::shared_refs::STATUS_FILE;
use berth_hub::daemon::{Cache, Settings, pass_with_cache};

use super::edits::{Files, LINK, SUBMODULE};
use super::sides::{MAIN, Said, Side, Sides};
use crate::support::removals::{GLOBAL_SET, managed, placement, work};
use crate::support::{cluster, config_map, fleet_member, namespace};

/// Commits these files at a minute, and lets all sides make a pass at a moment.
pub fn step(sides: &mut Sides, files: &Files, minute: i64, clock: Timestamp) -> Said {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    sides.commit(files, "edit\n", Timestamp::from_second(start.as_second() + 60 * minute).unwrap());
    let said = sides.pass(clock);
    assert!(!said.is_refused, "{said:?}");
    sides.prove(clock);
    said
}

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

fn clock() -> Timestamp {
    "2027-01-01T00:00:00Z".parse().unwrap()
}

pub fn with(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

const BOUND: &str = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n\
                     metadata: {name: global, namespace: shop}\nspec: {clusterSet: global}\n";

#[test]
fn a_score_that_ends_within_a_second_ends_for_everybody() {
    let score = "apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: AddOnPlacementScore\n\
                 metadata: {name: default, namespace: c2}\n\
                 status: {validUntil: \"2026-01-01T00:01:59.500Z\", scores: [{name: free, value: 60}]}\n";
    let placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                     metadata: {name: web, namespace: shop}\nspec:\n  numberOfClusters: 1\n  prioritizerPolicy:\n    \
                     mode: Exact\n    configurations:\n    \
                     - {weight: 2, scoreCoordinate: {type: AddOn, addOn: {resourceName: default, scoreName: free}}}\n";
    let managed = |name: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: {name}}}\n\
             spec: {{hubAcceptsClient: true}}\n"
        )
    };
    let (c1, c2) = (managed("c1"), managed("c2"));
    let mut files = with(&[
        ("b.yaml", BOUND),
        ("c1.yaml", &c1),
        ("c2.yaml", &c2),
        ("s.yaml", score),
        ("p.yaml", placement),
    ]);
    let mut sides = Sides::new(&Settings::of(""));
    step(&mut sides, &files, 1, at("00:01:00"));
    files.insert("note.yaml".into(), namespace("shop"));
    step(&mut sides, &files, 2, at("00:02:00"));
}

#[test]
fn a_cluster_that_is_out_anyway_and_falls_silent_changes_its_decision() {
    let member = "apiVersion: cluster.kubernetes-fleet.io/v1\nkind: MemberCluster\nmetadata: {name: c1}\nspec:\n  \
                  identity: {kind: ServiceAccount, name: a, namespace: fleet-system, apiGroup: ''}\nstatus:\n  \
                  agentStatus:\n  - type: MemberAgent\n    lastReceivedHeartbeat: \"2026-01-01T00:00:00Z\"\n    \
                  conditions:\n    - {type: Joined, status: \"False\", reason: x, message: x, \
                  lastTransitionTime: \"2026-01-01T00:00:00Z\"}\n";
    let drained = "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {name: c2}\n\
                   spec:\n  hubAcceptsClient: true\n  taints:\n  \
                   - {key: drain, effect: NoSelect, timeAdded: \"2026-01-01T00:03:00Z\"}\n";
    let tolerant = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                    metadata: {name: web, namespace: shop}\nspec:\n  tolerations:\n  \
                    - {key: drain, operator: Exists, tolerationSeconds: 600}\n";
    let placed = |value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: w0, namespace: shop}}\ndata: {{value: {value}}}\n---\n\
             apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourcePlacement\n\
             metadata: {{name: all, namespace: shop}}\nspec:\n  \
             resourceSelectors: [{{group: '', version: v1, kind: ConfigMap, name: w0}}]\n  \
             policy: {{placementType: PickAll}}\n"
        )
    };
    let mut files =
        with(&[("b.yaml", BOUND), ("c1.yaml", member), ("c2.yaml", drained), ("p.yaml", tolerant)]);
    let mut sides = Sides::new(&Settings::of(""));
    files.insert("rp.yaml".into(), placed("a"));
    step(&mut sides, &files, 1, at("00:01:10"));
    files.insert("rp.yaml".into(), placed("b"));
    step(&mut sides, &files, 2, clock());
}

/// A file that is broken leaves nothing to publish again once its last good form is kept.
#[test]
fn a_second_pass_over_a_broken_file_publishes_nothing() {
    let everywhere = "{clusterSelector: {matchLabels: {env: e1}}}";
    let mut files = with(&[("apps/shop.yaml", &namespace("shop"))]);
    for name in ["c0", "c1", "c2", "c3"] {
        files.insert(format!("clusters/{name}.yaml"), cluster(name, &[("env", "e1")]));
        files.insert(format!("apps/{name}.yaml"), config_map(name, "0", everywhere));
    }
    let mut sides = Sides::new(&Settings::of(""));
    let edits = [
        ("clusters/c1.yaml", Some(cluster("c1", &[("env", "e0")]))),
        ("apps/c0.yaml", None),
        ("apps/c1.yaml", Some(config_map("c1", "1", everywhere))),
        ("clusters/c0.yaml", Some("kind: [\n".to_owned())),
    ];
    step(&mut sides, &files, 0, clock());
    for (minute, (path, text)) in (1..).zip(edits) {
        files.remove(path);
        files.extend(text.map(|text| (path.to_owned(), text)));
        step(&mut sides, &files, minute, clock());
        let again = sides.pass(clock());
        assert!(!again.is_published, "after {path}: {again:?}");
    }
}

/// A cluster without objects is in no commit, so that nobody counts it among those that were.
#[test]
fn clusters_without_objects_that_leave_count_for_nobody() {
    let mut sides = Sides::new(&Settings::of(""));
    let mut files =
        with(&[("s.yaml", GLOBAL_SET), ("p.yaml", &placement("size", "small")), ("w.yaml", &work(1))]);
    for name in ["a", "b", "c", "d", "e", "x", "y"] {
        files.insert(format!("{name}.yaml"), managed(name, ""));
    }
    let shrinks = |sides: &Sides, name: &str| {
        let status =
            format!("apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: {name}}}\n");
        sides.report(
            name,
            Some(format!("{status}reported: \"{}\"\nclaims: {{size: small}}\n", at("00:00:30"))),
        );
    };
    ["x", "y"].iter().for_each(|name| shrinks(&sides, name));
    step(&mut sides, &files, 1, at("00:01:00"));
    ["x", "y"].iter().for_each(|name| drop(files.remove(&format!("{name}.yaml"))));
    ["a", "b", "c", "d"].iter().for_each(|name| shrinks(&sides, name));
    let said = step(&mut sides, &files, 2, at("00:02:00"));
    assert_eq!(said.approvals.len(), 1, "{said:?}");
}

/// The namespace of a placement's objects comes to clusters and goes, by one of its workloads or another.
#[test]
fn a_namespace_that_comes_and_goes_is_warned_of_alike() {
    let placed = |kind: &str, of: &str, selected: &str, policy: &str| {
        format!(
            "apiVersion: placement.kubernetes-fleet.io/v1\nkind: {kind}\nmetadata: {{{of}}}\nspec:\n  \
             resourceSelectors: [{{group: \"\", version: v1, {selected}}}]\n  policy: {policy}\n"
        )
    };
    let brings = |name: &str, policy: &str| {
        let selected = "kind: Namespace, name: shop, selectionScope: NamespaceOnly";
        placed("ClusterResourcePlacement", &format!("name: {name}"), selected, policy)
    };
    let fixed = |names: &str| format!("{{placementType: PickFixed, clusterNames: [{names}]}}");
    let all = "{placementType: PickAll}";
    let web = placed("ResourcePlacement", "name: web, namespace: shop", "kind: ConfigMap, name: web", all);
    let mut files = with(&[
        ("shop.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"),
        ("web.yaml", &web),
        ("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\n"),
        ("one.yaml", &brings("one", all)),
    ]);
    for name in ["a", "b", "c"] {
        files.insert(format!("{name}.yaml"), fleet_member(name, "prod"));
    }
    let mut sides = Sides::new(&Settings::of(""));
    let mut minute = 0;
    let mut lacks = |sides: &mut Sides, files: &Files, clusters: usize| {
        minute += 1;
        let said = step(sides, files, minute, clock());
        let warning = format!("is placed in {clusters} of ");
        assert_eq!(said.says("that get no namespace"), clusters > 0, "{said:?}");
        assert_eq!(said.says(&warning), clusters > 0, "{said:?}");
    };
    lacks(&mut sides, &files, 0);
    files.insert("d.yaml".to_owned(), fleet_member("d", "prod"));
    lacks(&mut sides, &files, 0);
    for (one, two, clusters) in [
        (Some("a, b"), None, 2),
        (Some("b, c"), None, 2),
        (Some("b, c"), Some("a"), 1),
        (Some("a, c"), Some("b, d"), 0),
        (Some("a, c"), Some("a"), 2),
        (None, Some("a, b, c, d"), 0),
        (None, None, 4),
    ] {
        for (name, clusters) in [("one", one), ("two", two)] {
            match clusters {
                Some(clusters) => files.insert(format!("{name}.yaml"), brings(name, &fixed(clusters))),
                None => files.remove(&format!("{name}.yaml")),
            };
        }
        lacks(&mut sides, &files, clusters);
    }
}

/// Another process does not know what the placements of the last pass read.
#[test]
fn a_fact_that_nothing_reads_any_more_goes() {
    let by_label = config_map("web", "one", "{clusterSelector: {matchLabels: {size: large}}}");
    let mut files =
        with(&[("shop.yaml", &namespace("shop")), ("a.yaml", &cluster("a", &[])), ("web.yaml", &by_label)]);
    let mut sides = Sides::new(&Settings { limits: all_may_go("size"), ..Settings::of("") });
    let status = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: a}\n\
                  reported: \"2026-01-01T00:00:30Z\"\nlabels: {size: large}\n";
    sides.report("a", Some(status.to_owned()));
    step(&mut sides, &files, 1, clock());
    files.insert("web.yaml".to_owned(), config_map("web", "one", "{clusters: [{name: a}]}"));
    step(&mut sides, &files, 2, clock());
}

/// A placement of one config map on all clusters, which rolls out step by step.
fn rolling(name: &str, selected: &str) -> String {
    format!(
        "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ResourcePlacement\nmetadata: {{name: {name}, namespace: shop}}\n\
         spec:\n  resourceSelectors: [{{group: \"\", version: v1, kind: ConfigMap, name: {selected}}}]\n  \
         policy: {{placementType: PickAll}}\n  strategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: 1}}}}\n"
    )
}

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\ndata: {{x: y}}\n")
}

/// The report is about a folder that the repository lacks, so that it has no verdict on any copy.
#[test]
fn a_report_that_goes_goes_for_everybody() {
    let by_label = config_map("web", "one", "{clusterSelector: {matchLabels: {size: large}}}");
    let files = with(&[
        ("shop.yaml", &namespace("shop")),
        ("a.yaml", &fleet_member("a", "prod")),
        ("web.yaml", &by_label),
        ("map.yaml", &map("settings")),
        ("settings.yaml", &rolling("settings", "settings")),
    ]);
    let mut sides = Sides::new(&Settings { limits: all_may_go("size"), ..Settings::of("") });
    let status = |applied: &str| {
        format!(
            "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {{name: a}}\n\
             reported: \"2026-01-01T00:00:30Z\"\nlabels: {{size: large}}\n{applied}"
        )
    };
    let lacking = format!("applied: {{sequence: 1, tree: {}, objects: 1}}\n", "ab".repeat(20));
    let has_web = |sides: &Sides| sides.has("clusters/a/shop/ConfigMap_web.yaml");
    let lacking = Some(&*lacking);
    let reports = [None, lacking, lacking, None, lacking, lacking, Some(""), None];
    for (minute, applied) in (1..).zip(reports) {
        sides.report("a", applied.map(status));
        step(&mut sides, &files, minute, clock());
        assert_eq!(has_web(&sides), applied.is_some(), "minute {minute}");
    }
}

/// The clocks of another hub and of a member are ahead. What that hub published counts once its date has come.
#[test]
fn a_tip_that_was_refused_is_looked_at_again() {
    let files = with(&[("shop.yaml", &namespace("shop")), ("a.yaml", &cluster("a", &[]))]);
    let status = "apiVersion: berth.dev/v1alpha1\nkind: ClusterStatus\nmetadata: {name: a}\n\
                  reported: \"2026-01-01T00:25:00Z\"\n";
    let early = Side::new();
    let source = early.commit(&files, None, "start\n", at("00:01:00"));
    early.point(MAIN, Some(source));
    let report = early.commit(&with(&[(STATUS_FILE, status)]), None, "status\n", at("00:01:00"));
    early.point(&early.settings.refs.status_of("a"), Some(report));
    early.process(at("00:30:00"));
    let late = Side::beside(&early, &early.settings);
    early.refs().iter().for_each(|(name, commit)| late.point(name, Some(*commit)));
    let mut cache = Cache::default();
    let refused = pass_with_cache(&late.settings, at("00:02:00"), &mut cache).unwrap_err().to_string();
    assert!(refused.contains("its date is in the future"), "{refused}");
    pass_with_cache(&late.settings, at("00:30:00"), &mut cache).unwrap();
}

/// A broken file stands where a folder was, or a folder where a broken file was. The form that was good keeps its name.
#[test]
fn a_broken_file_in_the_place_of_a_folder_keeps_its_objects() {
    let broken = "kind: [\n";
    let web = config_map("web", "one", "{clusterSelector: {}}");
    let mut files = with(&[("shop.yaml", &namespace("shop")), ("a.yaml", &cluster("a", &[]))]);
    let mut sides = Sides::new(&Settings::of(""));
    let places = ["apps/web.yaml/web.yaml", "apps/web.yaml", "apps/web.yaml/deep.yaml/web.yaml"];
    files.insert(places[0].to_owned(), web);
    step(&mut sides, &files, 1, clock());
    for (minute, path) in (2..).zip(places.into_iter().chain(places)) {
        files.retain(|path, _| !path.starts_with("apps/"));
        files.insert(path.to_owned(), broken.to_owned());
        step(&mut sides, &files, minute, clock());
        assert!(sides.has(&format!("kept/{}", places[0])), "{path}");
        assert!(!sides.pass(clock()).is_published);
    }
    assert!(sides.has("clusters/a/shop/ConfigMap_web.yaml"));
}

/// People cannot mean to remove what is in the folder: they renamed it, moved it too deep or put a link there.
#[test]
fn a_folder_that_is_not_read_any_more_keeps_its_objects() {
    let web = config_map("web", "one", "{clusterSelector: {}}");
    let whole = with(&[
        ("shop.yaml", &namespace("shop")),
        ("a.yaml", &cluster("a", &[])),
        ("apps/v1.2/web.yaml", &web),
    ]);
    let mut sides = Sides::new(&Settings::of(""));
    let deep = format!("{}web.yaml", "d/".repeat(70));
    let places = [
        ("apps/v\u{200b}2/web.yaml", &*web),
        ("a\u{200b}pps/web.yaml", &web),
        (&deep, &web),
        ("apps/v1.2", LINK),
        ("apps", LINK),
        ("apps", SUBMODULE),
        ("apps/v1.2/web.yaml", LINK),
        ("apps/v1.2/web.yaml", SUBMODULE),
    ];
    for (minute, (place, text)) in (0..).step_by(2).zip(places) {
        step(&mut sides, &whole, minute, clock());
        let mut files = whole.clone();
        files.remove("apps/v1.2/web.yaml");
        files.insert(place.to_owned(), text.to_owned());
        let said = step(&mut sides, &files, minute + 1, clock());
        assert!(said.approvals.is_empty(), "{place}: {said:?}");
        assert!(sides.has("clusters/a/shop/ConfigMap_web.yaml"), "{place}");
        assert!(!sides.pass(clock()).is_published, "{place}");
    }
}

#[test]
fn settings_that_are_not_read_any_more_stay_in_effect() {
    let settings = "apiVersion: berth.dev/v1alpha1\nkind: FleetConfig\nspec: {exclude: [drafts/]}\n";
    let mut files = with(&[
        ("shop.yaml", &namespace("shop")),
        ("a.yaml", &cluster("a", &[])),
        ("drafts/web.yaml", &config_map("web", "one", "{clusterSelector: {}}")),
    ]);
    let mut sides = Sides::new(&Settings::of(""));
    for (minute, text) in (0..).zip([settings, LINK, settings, SUBMODULE, "kind: [\n"]) {
        files.insert("berth.yaml".to_owned(), text.to_owned());
        step(&mut sides, &files, minute, clock());
        assert!(!sides.has("clusters/a/shop/ConfigMap_web.yaml"), "{text}");
    }
}

/// A part of a path that is too long for one name is split, and begins like a name that is just short enough.
#[test]
fn broken_files_whose_long_names_begin_alike_are_kept_side_by_side() {
    let mut files = with(&[("shop.yaml", &namespace("shop")), ("a.yaml", &cluster("a", &[]))]);
    let short = format!("{}.yaml", "w".repeat(195));
    let names = [short.clone(), format!("{short}.more.yaml")];
    for (path, name) in names.iter().zip(["one", "two"]) {
        files.insert(path.clone(), config_map(name, "1", "{clusterSelector: {}}"));
    }
    let mut sides = Sides::new(&Settings::of(""));
    step(&mut sides, &files, 1, clock());
    files.extend(names.map(|path| (path, "kind: [\n".to_owned())));
    for minute in 2..4 {
        step(&mut sides, &files, minute, clock());
        assert!(
            ["one", "two"].iter().all(|name| sides.has(&format!("clusters/a/shop/ConfigMap_{name}.yaml")))
        );
    }
}

/// The inputs of a workload's releases stand in a folder beside the file of its releases.
#[test]
fn workloads_with_names_like_files_have_releases_of_their_own() {
    let mut files = with(&[("a.yaml", &fleet_member("a", "prod")), ("shop.yaml", &namespace("shop"))]);
    for (name, selected) in [("web", "one"), ("web.yaml", "two")] {
        files.insert(format!("{selected}.yaml"), map(selected) + "---\n" + &rolling(name, selected));
    }
    let mut sides = Sides::new(&Settings::of(""));
    step(&mut sides, &files, 1, clock());
    files.insert("b.yaml".to_owned(), fleet_member("b", "prod"));
    let said = step(&mut sides, &files, 2, clock());
    assert!(!said.says("did not write"), "{said:?}");
}

/// Limits that hold nothing back, with this label reported by members.
fn all_may_go(label: &str) -> Limits {
    let limits = format!(
        "clusters=100%/0 objects=100%/0 evictions=100%/0 risky=allowed rollback=5 window=1h rollback-window=1h \
         trailers=off labels={label} failover=on"
    );
    limits.parse().expect("limits")
}
