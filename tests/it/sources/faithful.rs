//! Sources with the real renderer, beside the real helm and kustomize.

use std::path::Path;

use super::{SourceFleet, helm_source};
use crate::charts::packagers;
use crate::support::{Ran, hermetic};

/// The documents that `helm template` prints for a chart of the fleet, without the comments that name templates.
fn helm_template(fleet: &SourceFleet, path: &str, values: &[&str]) -> Option<String> {
    let home = tempfile::tempdir().expect("a folder");
    let mut helm = hermetic(packagers()?.join("helm").to_str().expect("text"));
    helm.current_dir(fleet.repo.path()).env("HOME", home.path());
    helm.args(["template", "web", path, "--namespace", "shop", "--kube-version", "1.34", "--include-crds"]);
    for file in values {
        helm.args(["--values", file]);
    }
    Some(Ran::of(&mut helm).expect(0).out)
}

/// The rendered files of a source, as the rendered branch has them.
fn kept(fleet: &SourceFleet, folder: &str) -> Vec<(String, String)> {
    let prefix = format!("kept/{folder}/");
    let files = fleet.repo.files("berth/rendered").into_iter();
    files.filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?.to_owned(), text))).collect()
}

/// The parts of a text between lines of dashes, sorted, without comments that name templates and without blank ends.
fn parts(text: &str) -> Vec<String> {
    let is_source = |line: &&str| !line.starts_with("# Source: ");
    let lines = text.lines().filter(is_source).map(|line| format!("{line}\n")).collect::<String>();
    let lines = format!("\n{lines}");
    let mut parts: Vec<String> = lines.split("\n---\n").map(|part| part.trim().to_owned()).collect();
    parts.retain(|part| !part.is_empty());
    parts.sort();
    parts
}

const CHART: &[(&str, &str)] = &[
    ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"7\"\n"),
    ("values.yaml", "replicas: 1\nbig: 1000000\nimage: {name: web, tag: latest}\nlist: [b, a]\nextra: {}\n"),
    (
        "crds/one.yaml",
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: ones.example.com\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: One, plural: ones}\n",
    ),
    ("templates/_names.tpl", "{{ define \"full\" }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end }}\n"),
    ("templates/NOTES.txt", "Hello {{ .Release.Name }}\n"),
    (
        "templates/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ include \"full\" . }}\n  namespace: {{ .Release.Namespace }}\n  \
         labels:\n    chart: {{ .Chart.Name }}-{{ .Chart.Version }}\n    kube: {{ .Capabilities.KubeVersion.Version | quote }}\nspec:\n  \
         replicas: {{ .Values.replicas }}\n  template:\n    spec:\n      containers:\n        - name: web\n          image: \"{{ \
         .Values.image.name }}:{{ .Values.image.tag }}\"\n          env: [{name: BIG, value: {{ .Values.big | quote }}}]\n",
    ),
    (
        "templates/more.yaml",
        "{{- range .Values.list }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{{ . }}\n  namespace: {{ \
         $.Release.Namespace }}\ndata:\n  text: |\n    one\n    # two\n{{- end }}\n",
    ),
    ("templates/none.yaml", "{{ if .Values.never }}\nkind: x\n{{ end }}\n"),
];

/// A fleet with a chart that uses many rules of Helm.
fn fleet() -> Option<SourceFleet> {
    let fleet = SourceFleet::real()?;
    std::fs::remove_dir_all(fleet.repo.path().join("charts/web")).expect("a folder");
    for (path, text) in CHART {
        fleet.repo.write(&format!("charts/web/{path}"), text);
    }
    fleet.repo.write("values/prod.yaml", "replicas: 3\nimage: {tag: \"1.0\"}\n");
    fleet
        .repo
        .write("apps/web.yaml", helm_source("web", "charts/web", "  valuesFiles: [values/prod.yaml]\n"));
    fleet.commit_and_publish("chart").expect(0);
    Some(fleet)
}

#[test]
#[ignore = "needs the renderer and helm"]
fn a_chart_gives_what_helm_template_gives() {
    let Some(fleet) = fleet() else { return };
    let Some(expected) = helm_template(&fleet, "charts/web", &["values/prod.yaml"]) else { return };
    let kept = kept(&fleet, "apps/web.yaml~/%2Ehelm/web");
    let paths: Vec<&str> = kept.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["crds/one.yaml", "templates/deployment.yaml", "templates/more.yaml"]);
    let text: Vec<String> = kept.into_iter().map(|(_, text)| text).collect();
    assert_eq!(parts(&text.join("\n---\n")), parts(&expected));
    assert!(fleet.copy("shop/Deployment.apps_web-web.yaml").expect("a copy").contains("replicas: 3"));
    fleet.run(&["verify"]).expect(0);
    assert!(fleet.publish().expect(0).out.contains("nothing to publish"));
}

#[test]
#[ignore = "needs the renderer"]
fn an_edit_of_values_changes_what_it_names() {
    let Some(fleet) = fleet() else { return };
    fleet.repo.write("values/prod.yaml", "replicas: 4\nimage: {tag: \"1.0\"}\n");
    fleet.repo.commit("four");
    let plan = fleet.run(&["plan"]).expect(0);
    assert!(plan.out.contains("spec.replicas: 3 → 4"), "{}", plan.out);
    assert!(plan.out.starts_with("3 objects changed in 3 of 3 clusters"), "{}", plan.out);
    fleet.publish().expect(0);
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs the renderer"]
fn a_fault_of_a_template_has_its_place_and_removes_nothing() {
    let Some(fleet) = fleet() else { return };
    let before = fleet.repo.files("berth/rendered");
    for (text, expected) in [
        ("a: {{ .Values.image.none.tag }}\n", "charts/web/templates/bad.yaml:1:"),
        ("a: {{ randAlphaNum 8 | quote }}\n", "charts/web/templates/bad.yaml:1:"),
        ("a: {{ nothing }}\n", "charts/web/templates/bad.yaml:1"),
        ("a: [\n", "charts/web/templates/bad.yaml"),
    ] {
        fleet.repo.write("charts/web/templates/bad.yaml", text);
        let ran = fleet.commit_and_publish("bad").expect(1);
        assert!(ran.err.contains(expected), "{text}: {}", ran.err);
        assert!(ran.err.contains("its last published objects stay"), "{text}: {}", ran.err);
        assert_eq!(fleet.repo.files("berth/rendered"), before, "{text}");
    }
}

#[test]
#[ignore = "needs the renderer"]
fn the_hints_of_a_fault_name_the_value_that_avoids_it() {
    let Some(fleet) = fleet() else { return };
    let template = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ndata:\n  password: {{ .Values.password | default \
                    (randAlphaNum 8) | b64enc }}\n";
    fleet.repo.write("charts/web/templates/secret.yaml", template);
    let ran = fleet.commit_and_publish("secret").expect(1);
    assert!(
        ran.err.contains("charts/web/templates/secret.yaml:6:") && ran.err.contains("hint: "),
        "{}",
        ran.err
    );
    fleet.repo.write("values/prod.yaml", "password: hunter2\n");
    let ran = fleet.commit_and_publish("password").expect(1);
    assert!(ran.err.contains("renders the Secret `db` with data"), "{}", ran.err);
    assert!(!fleet.repo.files("berth/rendered").values().any(|text| text.contains("aHVudGVyMg")));
}

#[test]
#[ignore = "needs the renderer"]
fn a_fault_of_a_base_is_the_same_in_every_run() {
    let Some(fleet) = SourceFleet::real() else { return };
    let source =
        "apiVersion: berth.dev/v1alpha1\nkind: KustomizeSource\nmetadata: {name: site}\nspec: {path: site}\n";
    fleet.repo.write("apps/site.yaml", source);
    let generator = "configMapGenerator: [{name: missing, behavior: merge, literals: [a=b]}]\n";
    fleet.repo.write("site/kustomization.yaml", generator);
    let ran = fleet.commit_and_publish("merge").expect(1);
    // Kustomize writes the address of its generator.
    assert!(ran.err.contains("&{0x… <nil>}"), "{}", ran.err);
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs the renderer"]
fn a_fault_of_values_names_their_file() {
    let Some(fleet) = fleet() else { return };
    fleet.repo.write("values/prod.yaml", "replicas: 3\nimage: [\n");
    let ran = fleet.commit_and_publish("values").expect(1);
    assert!(ran.err.contains("values/prod.yaml:"), "{}", ran.err);
    let schema = "{\"type\": \"object\", \"properties\": {\"replicas\": {\"type\": \"integer\"}}}\n";
    fleet.repo.write("charts/web/values.schema.json", schema);
    fleet.repo.write("values/prod.yaml", "replicas: many\n");
    let ran = fleet.commit_and_publish("schema").expect(1);
    assert!(ran.err.contains("replicas"), "{}", ran.err);
}

#[test]
#[ignore = "needs the renderer and kustomize"]
fn a_base_gives_what_kustomize_build_gives() {
    let Some(fleet) = SourceFleet::real() else { return };
    let Some(programs) = packagers() else { return };
    let source = "apiVersion: berth.dev/v1alpha1\nkind: KustomizeSource\nmetadata: {name: site}\nspec: {path: site/prod}\n";
    fleet.repo.write("apps/site.yaml", source);
    fleet.repo.write(
        "site/prod/kustomization.yaml",
        "resources: [../base]\nnamespace: shop\nnamePrefix: prod-\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\n",
    );
    fleet.repo.write("site/base/kustomization.yaml", "resources: [service.yaml]\n");
    fleet.repo.write(
        "site/base/service.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: {name: site}\nspec: {ports: [{port: 80}]}\n",
    );
    fleet.commit_and_publish("base").expect(0);
    let built = Ran::of(
        hermetic(Path::new(programs).join("kustomize").to_str().expect("text"))
            .current_dir(fleet.repo.path())
            .args(["build", "site/prod"]),
    );
    let kept = kept(&fleet, "apps/site.yaml~/%2Ekustomize/site");
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].1, built.expect(0).out.trim_end());
    assert!(fleet.copy("shop/Service_prod-site.yaml").is_some());
    fleet.run(&["verify"]).expect(0);
    fleet.repo.write("site/prod/kustomization.yaml", "resources: [https://example.com/base]\n");
    let ran = fleet.commit_and_publish("remote").expect(1);
    assert!(ran.err.contains("site/prod/kustomization.yaml"), "{}", ran.err);
    assert!(fleet.copy("shop/Service_prod-site.yaml").is_some());
}

#[test]
#[ignore = "needs the renderer"]
fn hooks_around_an_installation_become_objects_in_waves() {
    let Some(fleet) = SourceFleet::real() else { return };
    let job = |name: &str, events: &str, weight: i32| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {events}\n    \
             helm.sh/hook-weight: \"{weight}\"\nspec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: a, image: b}}]}}}}}}\n"
        )
    };
    fleet.repo.write("charts/web/templates/migrate.yaml", job("migrate", "pre-install,pre-upgrade", -5));
    fleet.repo.write("charts/web/templates/notify.yaml", job("notify", "post-upgrade", 5_000));
    fleet.repo.write("charts/web/templates/clean.yaml", job("clean", "pre-delete", 0));
    let secret = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: before, annotations: {helm.sh/hook: pre-install, berth.dev/wave: \"-7\"}}\n";
    fleet.repo.write("charts/web/templates/before.yaml", secret);
    fleet.repo.write("apps/web.yaml", helm_source("web", "charts/web", "  hooks: waves\n"));
    let ran = fleet.commit_and_publish("hooks").expect(0);
    assert!(
        ran.err.contains("the Job `clean` is a hook (pre-delete), a moment that berth does not have"),
        "{}",
        ran.err
    );
    let job = |name: &str| fleet.copy(&format!("shop/Job.batch_{name}.yaml"));
    for (name, wave) in [("migrate", "-1005"), ("notify", "1999")] {
        let text = job(name).expect("a job");
        let has = |line: &str| text.contains(line);
        assert!(
            has(&format!("berth.dev/wave: \"{wave}\""))
                && has("berth.dev/recreate: allowed")
                && has("namespace: shop"),
            "{text}"
        );
    }
    assert!(job("clean").is_none());
    let before = fleet.copy("shop/ConfigMap_before.yaml").expect("a copy");
    assert!(before.contains("berth.dev/wave: \"-7\"") && !before.contains("recreate"), "{before}");
    fleet.run(&["verify"]).expect(0);
}

#[test]
#[ignore = "needs the renderer"]
fn an_object_without_a_namespace_gets_that_of_the_release() {
    let Some(fleet) = SourceFleet::real() else { return };
    let kept = kept(&fleet, "apps/web.yaml~/%2Ehelm/web");
    let expected = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  namespace: shop\n  name: web\ndata:\n  colour: \"red\"";
    assert_eq!(kept, [("templates/config.yaml".to_owned(), expected.to_owned())]);
}
