//! The kinds that berth's account may list, asked in one question where many lists would be refused.

use kube::api::PostParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::api_client::{ApiClient, patiently};

/// Rights to list kinds in all namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRights {
    /// `None` if the server does not know all of them.
    rules: Option<Vec<Rule>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RulesStatus {
    resource_rules: Vec<Rule>,
    incomplete: bool,
}

impl ListRights {
    /// Asks for the account's rights. Those that it has in berth's namespace alone are among them.
    pub async fn ask(api: &ApiClient) -> ListRights {
        let question = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": api.identity.namespace},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let ask = || async {
            let request =
                Request::new(path).create(&PostParams::default(), question.to_string().into_bytes());
            api.client().request::<Json>(request.map_err(kube::Error::BuildRequest)?).await
        };
        let answer = patiently(ask).await.ok();
        let said: Option<RulesStatus> =
            answer.and_then(|mut answer| serde_json::from_value(answer["status"].take()).ok());
        ListRights { rules: said.filter(|said| !said.incomplete).map(|said| said.resource_rules) }
    }

    /// Reports whether a list of all objects of a kind may be answered.
    pub fn may_list(&self, group: &str, plural: &str) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|it| it == "*" || it == one);
        let allows = |rule: &Rule| {
            rule.resource_names.is_empty()
                && has(&rule.verbs, "list")
                && has(&rule.api_groups, group)
                && has(&rule.resources, plural)
        };
        self.rules.as_ref().is_none_or(|rules| rules.iter().any(allows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_one_to_list_all_of_a_kind() {
        let rule = |verb: &str, group: &str, plural: &str, name: &str| Rule {
            verbs: vec![verb.to_owned()],
            api_groups: vec![group.to_owned()],
            resources: vec![plural.to_owned()],
            resource_names: if name.is_empty() { Vec::new() } else { vec![name.to_owned()] },
        };
        let rights = |rules| ListRights { rules: Some(rules) };
        let some = rights(vec![
            rule("list", "apps", "deployments", ""),
            rule("get", "", "secrets", ""),
            rule("list", "", "configmaps", "one"),
            rule("*", "batch", "*", ""),
        ]);
        assert!(some.may_list("apps", "deployments") && some.may_list("batch", "jobs"));
        for (group, plural) in [("", "secrets"), ("", "configmaps"), ("apps", "daemonsets")] {
            assert!(!some.may_list(group, plural), "{plural}");
        }
        assert!(ListRights::default().may_list("", "secrets"), "what is unknown is tried");
    }
}
