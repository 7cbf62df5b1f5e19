//! Schemas as editors show them: those of `berth schema`, in the YAML language server.

use serde_json::json;

use crate::support::language_server::LanguageServer;
use crate::support::run;

/// The line that names the schema where no setting does.
const MODELINE: &str = "# yaml-language-server: $schema=../.schemas/all.json\n";

/// A document of each system and one of berth's own.
const SOUND: &str = "\
apiVersion: types.kubefed.io/v1beta1
kind: FederatedConfigMap
metadata: {name: greeting, namespace: hello}
spec:
  template: {data: {text: hello}}
  placement: {clusterSelector: {matchLabels: {region: south}}}
  overrides:
    - clusterName: turin
      clusterOverrides: [{path: /data/text, value: ciao}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: '', version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickN, numberOfClusters: 2}
  strategy: {rollingUpdate: {maxUnavailable: 25%}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: web, namespace: shop}
spec:
  numberOfClusters: 2
  predicates:
    - requiredClusterSelector: {labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}
---
apiVersion: berth.dev/v1alpha1
kind: FleetConfig
spec: {exclude: [docs], unknownFields: warning}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: any}
anything: goes
";

/// A folder with the schemas of all kinds, and a server that has it open.
fn editor() -> Option<(tempfile::TempDir, LanguageServer)> {
    // The server's globs pass over folders whose name begins with a dot.
    let folder = tempfile::Builder::new().prefix("fleet").tempdir().expect("a folder");
    run(&["schema", "--write", folder.path().join(".schemas").to_str().expect("text")]).expect(0);
    let server = LanguageServer::start(folder.path(), json!({".schemas/all.json": ["fleet/*.yaml"]}))?;
    Some((folder, server))
}

#[test]
#[ignore = "needs the YAML language server"]
fn an_editor_shows_faults_and_completes_fields_and_words() {
    let Some((_folder, mut editor)) = editor() else { return };
    let faults = editor.faults("fleet/sound.yaml", SOUND);
    assert!(faults.is_empty(), "{faults:?}");

    let broken = SOUND
        .replace("clusterSelector: {matchLabels", "clusterselector: {matchLabels")
        .replace("PickN", "PickSome")
        .replace("numberOfClusters: 2\n", "numberOfClusters: two\n")
        .replace("exclude: [docs]", "exclude: docs");
    let faults = editor.faults("fleet/broken.yaml", &broken);
    let expected = [
        (6, "clusterselector is not allowed"),
        (16, "\"PickAll\", \"PickN\", \"PickFixed\""),
        (23, "Expected \"integer\""),
        (29, "Expected one of array"),
    ];
    for (line, part) in expected {
        let is_shown = faults.iter().any(|(at, message)| *at == line && message.contains(part));
        assert!(is_shown, "line {line}, {part}: {faults:#?}");
    }

    let start = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                 metadata: {name: web, namespace: shop}\nspec:\n";
    let offered = editor.completions("elsewhere/fields.yaml", &format!("{MODELINE}{start}  num|\n"));
    for name in ["numberOfClusters", "predicates", "tolerations"] {
        assert!(offered.iter().any(|label| label == name), "{name}: {offered:?}");
    }
    let words = format!("{MODELINE}{start}  tolerations:\n    - key: gpu\n      operator: |\n");
    let offered = editor.completions("elsewhere/words.yaml", &words);
    for word in ["Equal", "Exists"] {
        assert!(offered.iter().any(|label| label == word), "{word}: {offered:?}");
    }
}

#[test]
fn schemas_are_found_by_kind_and_by_group_and_kind() {
    let schema = run(&["schema", "Placement"]).expect(0).json();
    assert_eq!(schema["title"], "Placement");
    assert_eq!(
        run(&["schema", "cluster.open-cluster-management.io/v1beta1/Placement"]).expect(0).json(),
        schema
    );
    assert!(run(&["schema"]).expect(0).out.contains("ClusterResourcePlacement"));
    assert!(run(&["schema", "Placemnt"]).expect(2).err.contains("did you mean `Placement`?"));
}
