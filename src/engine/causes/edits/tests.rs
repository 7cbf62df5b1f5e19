use super::*;

const CLUSTER: &str = "# oslo\napiVersion: core.kubefed.io/v1beta1\nkind: KubeFedCluster\nmetadata:\n  name: oslo\n  \
                       labels: {env: prod, region: north}\n  annotations: {note: a}\nspec:\n  taints:\n  - {key: a, effect: \
                       NoSchedule}\n  - {key: b, value: x, effect: NoExecute}\n";

fn tree(files: &[(&str, &str)]) -> SourceTree {
    let files = files.iter().map(|(path, text)| SourceFile::new(*path, text.as_bytes()));
    SourceTree { files: files.collect(), ..SourceTree::default() }
}

fn between(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<String> {
    let edits = Edits::between(&tree(before), &tree(after), |_| false);
    let all: BTreeSet<usize> = (0..edits.inputs.len()).collect();
    // Without all edits there is no difference; without none, the new tree results.
    let back = edits.without(&tree(after), &all);
    assert_eq!(Edits::between(&tree(before), &back, |_| false).inputs, []);
    let same = edits.without(&tree(after), &BTreeSet::new());
    assert_eq!(Edits::between(&tree(after), &same, |_| false).inputs, []);
    let show = |input: &InputChange| format!("{}: {}", input.at.as_ref().expect("a place"), input.words);
    edits.inputs.iter().map(show).collect()
}

/// Returns the edits of one file when one part of its text is replaced.
#[track_caller]
fn edited(text: &str, from: &str, to: &str) -> Vec<String> {
    assert!(text.contains(from), "{from}");
    between(&[("c.yaml", text)], &[("c.yaml", &text.replacen(from, to, 1))])
}

#[test]
fn fields_are_called_as_people_call_them() {
    assert_eq!(edited(CLUSTER, "env: prod", "env: prd"), ["c.yaml:6:12: label env: prod → prd"]);
    assert_eq!(edited(CLUSTER, "env: prod, ", ""), ["c.yaml:6:12: label removed: env=prod"]);
    assert_eq!(edited(CLUSTER, "north}", "north, x.io/y: z}"), ["c.yaml:6:38: label added: x.io/y=z"]);
    assert_eq!(edited(CLUSTER, "note: a", "note: \"\""), ["c.yaml:7:17: annotation note: a → \"\""]);
    let taint = edited(CLUSTER, "  taints:\n", "  taints:\n  - {key: c, value: y, effect: NoSchedule}\n");
    assert_eq!(taint, ["c.yaml:10:5: taint added: c=y:NoSchedule"]);
    let taint = edited(CLUSTER, "  - {key: a, effect: NoSchedule}\n", "");
    assert_eq!(taint, ["c.yaml:10:5: taint removed: a:NoSchedule"]);
    assert_eq!(edited(CLUSTER, "value: x", "value: z"), ["c.yaml:11:14: spec.taints[b].value: x → z"]);
    assert_eq!(edited(CLUSTER, "# oslo\n", ""), [""; 0]);
    assert_eq!(edited(CLUSTER, "spec:", "# more\nspec:"), [""; 0]);
    let order = edited(CLUSTER, "env: prod, region: north", "region: north, env: prod");
    assert_eq!(order, ["c.yaml:6:3: metadata.labels: order of fields changed"]);
}

#[test]
fn an_item_in_the_middle_of_a_list_is_one_edit() {
    let list = "kind: A\nmetadata: {name: a}\nspec:\n  names: [a, b, c]\n  maps:\n  - {x: 1}\n  - {x: 2}\n";
    assert_eq!(edited(list, "[a, b", "[a, z, b"), ["c.yaml:4:14: spec.names[1] added: z"]);
    assert_eq!(edited(list, "b, ", ""), ["c.yaml:4:14: spec.names[1] removed: b"]);
    assert_eq!(
        edited(list, "  - {x: 1}", "  - {x: 0}\n  - {x: 1}"),
        ["c.yaml:6:5: spec.maps[0] added: {x: 0}"]
    );
    assert_eq!(edited(list, "x: 2", "x: 3"), ["c.yaml:7:6: spec.maps[1].x: 2 → 3"]);
    assert_eq!(edited(list, "[a, b, c]", "[c, a, b]").len(), 2);
}

#[test]
fn overrides_are_paths_and_values() {
    let text = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedDeployment\n\
                metadata: {name: web, namespace: shop}\nspec:\n  overrides:\n  - clusterName: oslo\n    \
                clusterOverrides:\n    - {path: /spec/replicas, value: 5}\n";
    let more = "  - clusterName: turin\n    clusterOverrides:\n    - path: /spec/template/spec/containers/0/image\n      \
                value: registry.example.com/web:1.5.0\n    - {op: remove, path: /metadata/labels/a}\n";
    let added = between(&[("a.yaml", text)], &[("a.yaml", &format!("{text}{more}"))]);
    assert_eq!(
        added,
        ["a.yaml:9:5: spec.overrides[turin] added: /spec/template/spec/containers/0/image = \
          registry.example.com/web:1.5.0, remove /metadata/labels/a"]
    );
    assert_eq!(
        edited(text, "value: 5", "value: 6"),
        ["c.yaml:8:30: spec.overrides[oslo].clusterOverrides[/spec/replicas].value: 5 → 6"]
    );
}

#[test]
fn documents_come_go_and_move() {
    let other = CLUSTER.replace("oslo", "turin");
    let both = format!("{CLUSTER}---\n{other}");
    let name = "KubeFedCluster turin";
    assert_eq!(
        between(&[("c.yaml", CLUSTER)], &[("c.yaml", &both)]),
        [format!("c.yaml:14:1: document added: {name}")]
    );
    assert_eq!(
        between(&[("c.yaml", &both)], &[("c.yaml", CLUSTER)]),
        [format!("c.yaml:14:1: document removed: {name}")]
    );
    let apart = [("c.yaml", CLUSTER), ("d.yaml", &other.replace("env: prod", "env: x"))];
    let moved = [
        format!("d.yaml:2:1: document moved from c.yaml to d.yaml: {name}"),
        "d.yaml:6:12: label env: prod → x".to_owned(),
    ];
    assert_eq!(between(&[("c.yaml", &both)], &apart), moved);
    let list = "apiVersion: v1\nkind: List\nitems:\n- {kind: A, apiVersion: v1, metadata: {name: a}, x: 1}\n- {kind: A, \
                apiVersion: v1, metadata: {name: b}}\n";
    assert_eq!(edited(list, "x: 1", "x: 2"), ["c.yaml:4:50: x: 1 → 2"]);
}

#[test]
fn a_file_that_cannot_be_read_is_one_edit() {
    let broken = "kind: [\n";
    assert_eq!(edited(CLUSTER, "spec:", "spec: ["), ["c.yaml: can no longer be read"]);
    assert_eq!(between(&[("c.yaml", broken)], &[("c.yaml", CLUSTER)]), ["c.yaml: can be read again"]);
    assert_eq!(between(&[], &[("c.yaml", broken)]), ["c.yaml: unreadable file added"]);
}

#[test]
fn no_data_of_a_secret_is_shown() {
    let data = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {env: prod}}\ndata: {password: aHVudGVy}\n";
    assert_eq!(edited(data, "aHVudGVy", "b3RoZXI="), ["c.yaml:4:8: data.password changed"]);
    assert_eq!(edited(data, "env: prod", "env: x"), ["c.yaml:3:30: label env: prod → x"]);
    let federated = "apiVersion: types.kubefed.io/v1beta1\nkind: FederatedSecret\nmetadata: {name: a}\nspec:\n  template: {data: \
                     {password: aHVudGVy}}\n  placement: {clusters: [{name: a}]}\n  overrides:\n  - clusterName: a\n    \
                     clusterOverrides: [{path: /data/password, value: aHVudGVy}]\n";
    assert_eq!(
        edited(federated, "aHVudGVy", "b3RoZXI="),
        ["c.yaml:5:21: spec.template.data.password changed"]
    );
    let one = edited(federated, "value: aHVudGVy", "value: b3RoZXI=");
    assert_eq!(one, ["c.yaml:9:47: spec.overrides[a].clusterOverrides[/data/password].value changed"]);
    assert_eq!(edited(federated, "{name: a}]", "{name: b}]").len(), 2);
    let work = "kind: ManifestWorkReplicaSet\nmetadata: {name: a}\nspec:\n  manifests:\n  - {apiVersion: v1, kind: Secret, \
                data: {x: aHVudGVy}}\n";
    assert!(!edited(work, "aHVudGVy", "b3RoZXI=")[0].contains("b3RoZXI"));
    let added = between(&[], &[("c.yaml", data)]);
    assert_eq!(added, ["c.yaml:1:1: document added: Secret a"]);
    let text = "kind: ConfigMap\nmetadata: {name: a}\ndata:\n  x.yaml: |\n    kind: Secret\n    data: {x: aHVudGVy}\n";
    assert_eq!(edited(text, "aHVudGVy", "b3RoZXI="), ["c.yaml:4:3: data[x.yaml] changed"]);
}

#[test]
fn names_of_strangers_forge_no_line() {
    let odd = "kind: A\nmetadata: {name: a, labels: {\"a\\\nb\": \"c\\\\e[2Jd\"}}\n";
    let found = edited(odd, "2Jd", "2Je");
    assert!(found[0].chars().all(|c| !c.is_control()), "{found:?}");
    let long = format!("kind: A\nmetadata: {{name: a}}\nx: {}\n", "y".repeat(500));
    assert!(edited(&long, "x: y", "x: z")[0].chars().count() < 400);
}

#[test]
fn values_that_readers_take_for_others_come_back_as_they_were() {
    let text = "kind: A\nmetadata: {name: a}\nx: {on: 'yes', n: 0o17, h: 0x1F, f: 1e3, d: 2001-01-01, e: \"\\\\u0085\\\\t/\", big: \
                123456789012345678901234567890, nul: ~, anchored: &a [1, {b: 2}], again: *a, tagged: !!str 12}\ny: 1\n";
    assert_eq!(edited(text, "y: 1", "y: 2"), ["c.yaml:4:1: y: 1 → 2"]);
    let before = tree(&[("c.yaml", text)]);
    let after = tree(&[("c.yaml", &text.replace("y: 1", "y: 2"))]);
    let edits = Edits::between(&before, &after, |_| false);
    let back = edits.without(&after, &BTreeSet::from([0]));
    let root = |tree: &SourceTree| {
        taking_back::read_pieces(&tree.files["c.yaml"]).expect("readable").remove(0).objects.remove(0).root
    };
    assert_eq!(root(&back).to_json(), root(&before).to_json());
}
