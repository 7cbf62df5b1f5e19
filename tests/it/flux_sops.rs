//! A Secret that SOPS encrypted goes through berth as it is, and the real Flux opens it.

use serde_json::{Value as Json, json};

use crate::support::flux_bed::Bed;
use crate::support::wait::eventually;
use crate::support::{Repo, fleet_member, run};

/// A key for this test alone, and a Secret that was encrypted for it with `encrypted_regex: ^(data|stringData)$`.
const KEY: &str = "AGE-SECRET-KEY-12JC0HTLN9U65XAVS7Z4NLT5Z940EA6MFMFVVRAE3LU7F7F5MF44QUNPVF2";
const SECRET: &str = include_str!("../../fixtures/sops/secret.json");

const PLACEMENT: &str = "apiVersion: placement.kubernetes-fleet.io/v1\nkind: ClusterResourcePlacement\n\
     metadata: {name: web}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]\n  \
     policy: {placementType: PickAll}\n";

fn people() -> Repo {
    let repo = Repo::new();
    let annotated = "{name: oslo, annotations: {berth.dev/applier: flux}, labels:";
    repo.write("clusters/oslo.yaml", fleet_member("oslo", "prod").replace("{name: oslo, labels:", annotated));
    repo.write("apps/shop.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    repo.write("apps/login.yaml", SECRET);
    repo.write("apps/web.yaml", PLACEMENT);
    repo.commit("begin");
    repo
}

/// The Secret in a cluster's published folder.
fn published(show: impl Fn(&str) -> String) -> Json {
    let text = show("shop/Secret_login.yaml");
    serde_yaml::from_str(&text).expect("YAML")
}

#[test]
fn an_encrypted_secret_reaches_flux_value_by_value_and_no_other_cluster() {
    let repo = people();
    run(&["run", "--once", "--repo", repo.arg()]).expect(0);
    let made = published(|path| repo.git(&["show", &format!("berth/rendered:clusters/oslo/{path}")]));
    let written: Json = serde_json::from_str(SECRET).expect("JSON");
    for part in ["stringData", "sops"] {
        assert_eq!(made[part], written[part], "{part}");
    }
    // berth's own member has no key: a cluster that it applies gets none.
    repo.write("clusters/turin.yaml", fleet_member("turin", "prod"));
    repo.commit("turin joins");
    let refused = run(&["run", "--once", "--repo", repo.arg()]).expect(1);
    assert!(refused.err.contains("`sops` is encrypted by SOPS"), "{}", refused.err);
    assert!(!refused.err.contains("AES256"), "{}", refused.err);
    // A cipher without SOPS's own note cannot be opened by anybody.
    let mut torn = written;
    torn.as_object_mut().expect("an object").remove("sops");
    repo.write("clusters/turin.yaml", "");
    repo.write("apps/login.yaml", torn.to_string());
    repo.commit("torn");
    let refused = run(&["run", "--once", "--repo", repo.arg()]).expect(1);
    assert!(refused.err.contains("`stringData.password` is encrypted by SOPS"), "{}", refused.err);
}

#[test]
#[ignore = "needs Flux"]
fn flux_opens_what_sops_encrypted() {
    let Some(bed) = Bed::of(people()) else { return };
    bed.pass().expect(0);
    let key = format!("--from-literal=age.agekey={KEY}");
    bed.kubectl(&["create", "secret", "generic", "age", "-n", "flux-system", &key]).expect(0);
    bed.join(&["--decryption-secret", "age"]);
    let secret = eventually("Flux applies the Secret", || bed.get("secret", "login"));
    assert_eq!(secret["data"]["password"], json!("b3BlbmVkIGJ5IEZsdXg="), "opened by Flux");
    assert!(secret.get("sops").is_none());
}
