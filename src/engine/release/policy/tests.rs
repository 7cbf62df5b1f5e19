use super::*;
use crate::load::{History, load};
use berth_base::model::rollout::Amount;
use berth_base::model::rollout::Stage;
use berth_base::model::staged::{Side, StageStrategy};
use berth_base::source::{SourceFile, SourceTree};

const WEB: &str = "FederatedConfigMap shop/web";

/// ConfigMaps `web` and `database` of KubeFed and a placement of KubeFleet, beside these policies.
fn fleet(policies: &[(&str, &str)]) -> Fleet {
    fleet_with(policies, "")
}

fn fleet_with(policies: &[(&str, &str)], annotations: &str) -> Fleet {
    let map = |name: &str, annotations: &str| {
        format!(
            "---\napiVersion: types.kubefed.io/v1beta1\nkind: FederatedConfigMap\n\
             metadata: {{name: {name}, namespace: shop, annotations: {{{annotations}}}}}\n\
             spec: {{template: {{}}, placement: {{clusterSelector: {{}}}}}}\n"
        )
    };
    let placement = "---\napiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
                     metadata: {name: all}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]\n  \
                     policy: {placementType: PickN, numberOfClusters: 3}\n";
    let namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let fns = "---\napiVersion: types.kubefed.io/v1beta1\nkind: FederatedNamespace\nmetadata: {name: shop, namespace: shop}\n\
               spec: {placement: {clusterSelector: {}}}\n";
    let (web, database) = (map("web", annotations), map("database", ""));
    let fleet = [&*web, &database, placement, namespace, fns].concat();
    let policy = |(name, spec): &(&str, &str)| {
        let text = format!(
            "apiVersion: berth.dev/v1alpha1\nkind: RolloutPolicy\nmetadata: {{name: {name}}}\nspec:\n{spec}\n"
        );
        SourceFile::new(format!("{name}.yaml"), text.as_bytes())
    };
    let mut files = vec![SourceFile::new("fleet.yaml", fleet.as_bytes())];
    files.extend(policies.iter().map(policy));
    let loaded =
        load(&SourceTree { files: files.into_iter().collect(), ..SourceTree::default() }, History::None);
    (*loaded.fleet).clone()
}

fn key(fleet: &Fleet, name: &str) -> Key {
    let mut keys = fleet.workloads.keys();
    keys.find(|key| key.to_string() == name).cloned().unwrap_or_else(|| panic!("no {name}"))
}

fn at(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

/// Returns the wave of the strategy that applies; `None` for the system's own strategy.
fn waves_of(fleet: &Fleet, name: &str) -> Option<usize> {
    match &*Orders::of(fleet, &key(fleet, name)).strategy() {
        Strategy::Progressive(rollouts) => rollouts[0].at_a_time().map(|amount| amount.of(100)),
        _ => None,
    }
}

fn waves(number: usize) -> String {
    format!(
        "  strategy: {{rolloutStrategy: {{type: Progressive, progressive: {{maxConcurrency: {number}}}}}}}"
    )
}

#[test]
fn the_nearest_strategy_counts() {
    let default = waves(9);
    let shop = format!("  workloads: [{{namespace: shop}}]\n{}", waves(2));
    let later = format!("  workloads: [{{name: web}}]\n{}", waves(3));
    let named = format!("  workloads: []\n{}", waves(4));
    let all = [("default", &*default), ("zz", &later), ("shop", &shop), ("named", &named)];
    assert_eq!(waves_of(&fleet(&[]), WEB), None);
    assert_eq!(waves_of(&fleet(&all[..1]), WEB), Some(9));
    assert_eq!(waves_of(&fleet(&all[..2]), WEB), Some(3));
    assert_eq!(waves_of(&fleet(&all), WEB), Some(2), "the first by name");
    assert_eq!(waves_of(&fleet_with(&all, "berth.dev/rollout-policy: named"), WEB), Some(4));
    // The placement has only the hub's default strategy, which no person chose.
    assert_eq!(waves_of(&fleet(&all), "ClusterResourcePlacement all"), Some(9));
}

#[test]
fn shares_of_a_rolling_update_are_those_of_the_placement() {
    let fleet = fleet(&[("default", "  strategy: {rollingUpdate: {maxUnavailable: 50%}}")]);
    let Strategy::Rolling(rolling) =
        Orders::of(&fleet, &key(&fleet, "ClusterResourcePlacement all")).strategy().into_owned()
    else {
        panic!("not rolling")
    };
    assert_eq!((rolling.max_unavailable, rolling.wanted), (Amount::Percent(50), Some(3)));
    assert!(rolling.asked);
}

#[test]
fn a_freeze_is_closed_from_friday_to_monday() {
    let freeze =
        "  freeze: [{schedule: 0 14 * * FRI, for: 66h, timeZone: Europe/Berlin, reason: no Friday releases}]";
    let fleet = fleet(&[("default", freeze)]);
    let web = key(&fleet, WEB);
    let orders = Orders::of(&fleet, &web);
    let friday = at("2026-01-02T13:00:00Z");
    assert_eq!(orders.closed(at("2026-01-02T12:59:59Z")), None);
    assert_eq!(orders.next_change(at("2026-01-02T12:59:59Z")), Some(friday));
    let monday = at("2026-01-05T07:00:00Z");
    let reason = "frozen until Mon 2026-01-05 08:00 Europe/Berlin: no Friday releases".to_owned();
    assert_eq!(orders.closed(friday), Some(Closed { reason, until: Some(monday) }));
    assert_eq!(orders.next_change(friday), Some(monday));
    assert_eq!(orders.closed(monday), None);
}

#[test]
fn windows_that_touch_are_one() {
    let nights = "  freeze: [{schedule: 0 18 * * *, for: 12h}]";
    let mornings = "  freeze: [{schedule: 0 6 * * MON, for: 2h}]";
    let fleet = fleet(&[("nights", nights), ("mornings", mornings)]);
    let web = key(&fleet, WEB);
    let orders = Orders::of(&fleet, &web);
    let closed = orders.closed(at("2026-01-04T20:00:00Z")).expect("closed");
    assert_eq!(closed.until, Some(at("2026-01-05T08:00:00Z")));
    assert_eq!(closed.reason, "frozen until Mon 2026-01-05 08:00 UTC");
    let always = self::fleet(&[("always", "  freeze: [{schedule: '* * * * *', for: 1m}]")]);
    let web = key(&always, WEB);
    assert!(Orders::of(&always, &web).closed(at("2026-01-05T08:00:00Z")).is_some());
}

#[test]
fn a_pause_and_a_missing_policy_close_for_good() {
    let fleet = fleet(&[("one", "  workloads: [{name: web}]\n  paused: {reason: waiting for legal}")]);
    let closed =
        |fleet: &Fleet, name: &str| Orders::of(fleet, &key(fleet, name)).closed(at("2026-01-05T08:00:00Z"));
    let reason = "paused: waiting for legal".to_owned();
    assert_eq!(closed(&fleet, WEB), Some(Closed { reason, until: None }));
    assert_eq!(closed(&fleet, "FederatedConfigMap shop/database"), None);
    let fleet = fleet_with(&[], "berth.dev/rollout-policy: gone");
    let reason = "the rollout policy `gone`, which it names, does not exist".to_owned();
    assert_eq!(closed(&fleet, WEB), Some(Closed { reason, until: None }));
}

#[test]
fn orders_of_all_policies_add_up() {
    let one = "  workloads: [{name: web}]
  pins: [{clusters: [eu-*], release: 7}, {labelSelector: {matchLabels: {ring: lts}}}]
  after: [{kind: FederatedConfigMap, namespace: shop, name: database}]
  approved: [{workload: {kind: FederatedConfigMap, namespace: shop, name: web}, release: 3, stage: eu, task: before}]
  restarted: [{workload: {kind: FederatedConfigMap, namespace: shop, name: web}, release: 3, times: 2}]";
    let two = "  onFailure: RollBack
  aborted: [{workload: {kind: FederatedConfigMap, namespace: shop, name: web}, release: 2}]";
    let fleet = fleet(&[("one", one), ("two", two)]);
    let (web, database) = (key(&fleet, WEB), key(&fleet, "FederatedConfigMap shop/database"));
    let orders = Orders::of(&fleet, &web);
    let lts: Labels = [("ring".to_owned(), "lts".to_owned())].into();
    assert_eq!(orders.pin("eu-1", &Labels::new()).map(|pin| pin.release), Some(Some(7)));
    assert_eq!(orders.pin("us-1", &lts).map(|pin| pin.release), Some(None));
    assert!(orders.pin("us-1", &Labels::new()).is_none());
    assert_eq!(orders.after(), [&database].into());
    let gate = |side| StageGate { stage: "eu".to_owned(), side };
    assert_eq!(orders.approved(3), [gate(Side::Before)].into());
    assert!(orders.aborted(2).is_some() && orders.aborted(3).is_none());
    assert_eq!((orders.restarts(3), orders.restarts(2)), (2, 0));
    assert_eq!(orders.on_failure(), OnFailure::RollBack);
    let other = Orders::of(&fleet, &database);
    assert!(other.after().is_empty() && other.aborted(2).is_none() && other.approved(3).is_empty());
}

#[test]
fn one_release_is_all_that_the_policy_lists() {
    let both =
        "  workloads: [{namespace: shop, name: web}, {namespace: shop, name: data*}]\n  together: true";
    let fleet = fleet(&[("both", both)]);
    let (web, database) = (key(&fleet, WEB), key(&fleet, "FederatedConfigMap shop/database"));
    assert_eq!(Orders::of(&fleet, &web).together(), Some([&web, &database].into()));
    assert_eq!(Orders::of(&fleet, &key(&fleet, "ClusterResourcePlacement all")).together(), None);
}

#[test]
fn stages_are_written_out_or_named() {
    let written =
        "  strategy: {stages: [{name: canary, labelSelector: {}, afterStageTasks: [{type: Approval}]}]}";
    let stages = |fleet: &Fleet| match &*Orders::of(fleet, &key(fleet, WEB)).strategy() {
        Strategy::Stages(stages) => stages.iter().map(|stage| stage.name.clone()).collect(),
        _ => Vec::new(),
    };
    assert_eq!(stages(&fleet(&[("written", written)])), ["canary"]);
    let mut named = fleet(&[("named", "  strategy: {stagedStrategy: rings}")]);
    let closed = |fleet: &Fleet| Orders::of(fleet, &key(fleet, WEB)).closed(at("2026-01-05T08:00:00Z"));
    assert!(closed(&named).is_some_and(|closed| closed.reason.contains("`rings`")));
    for (namespace, stage) in [("", "everywhere"), ("shop", "here"), ("bank", "elsewhere")] {
        let strategy = Key::new("x", "Stages", namespace, "rings");
        let found = StageStrategy {
            key: strategy.clone(),
            origin: berth_base::diag::Pos::file("x"),
            stages: vec![Stage {
                name: stage.to_owned(),
                selector: None,
                sorted_by: None,
                at_a_time: Amount::Count(1),
                before: Vec::new(),
                after: Vec::new(),
            }],
        };
        named.stage_strategies.insert(strategy, found);
    }
    // A policy without a namespace names stages without a namespace.
    assert_eq!(stages(&named), ["everywhere"]);
    assert_eq!(closed(&named), None);
}
