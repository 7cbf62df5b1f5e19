//! Any text is an expression or is refused at a character of it; what is one ends, whatever it is asked over, and
//! gives the same again.

use berth_cel::{Names, Program, Value, Variable};
use serde_json::json;

const NAMES: Names<'_> = Names { variables: &[Variable::any("managedCluster")], methods: &["scores"] };

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let program = match Program::compile(text, NAMES) {
        Ok(program) => program,
        Err(fault) => return assert!(!fault.to_string().is_empty()),
    };
    let clusters = [
        json!({}),
        json!({
            "metadata": {"name": "oslo", "labels": {"env": "prod", "version": "v1.30.2"}, "annotations": {"a": "[1, {\"b\": null}]"}},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60, "taints": [{"key": "gpu", "effect": "NoSelect"}]},
            "status": {"allocatable": {"cpu": "12500m", "memory": "64Gi"}, "clusterClaims": [{"name": "cloud", "value": "Amazon"}], "version": {"kubernetes": "v1.30.1"}},
        }),
    ];
    for cluster in clusters {
        let cluster = Value::from(&cluster);
        let answer = |_: usize, resource: &str| match resource {
            "default" => Ok(Value::from(&json!([{"name": "cpu", "value": -90}]))),
            other => Err(format!("no {other}")),
        };
        let show = || match program.run(&cluster, &answer) {
            Ok(value) => format!("{value:?}"),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(show(), show());
    }
}
