//! The kinds that berth's account may list, asked in one question where many lists would be refused.

use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview};
use kube::api::{Api, PostParams};

use super::api_client::{ApiClient, patiently};

/// Rights to list kinds in all namespaces.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ListRights {
    /// `None` if the server does not know all of them.
    rules: Option<Vec<ResourceRule>>,
}

impl ListRights {
    /// Asks for the account's rights. Those that it has in berth's namespace alone are among them.
    pub async fn ask(api: &ApiClient) -> ListRights {
        let mut question = SelfSubjectRulesReview::default();
        question.spec.namespace = Some(api.identity.namespace.clone());
        let (reviews, params) = (Api::all(api.server.client.clone()), PostParams::default());
        let answer = patiently(|| reviews.create(&params, &question)).await;
        let known = answer.ok().and_then(|answer| answer.status).filter(|known| !known.incomplete);
        ListRights { rules: known.map(|known| known.resource_rules) }
    }

    /// Reports whether a list of all objects of a kind may be answered.
    pub(crate) fn may_list(&self, group: &str, plural: &str) -> bool {
        let has = |all: &[String], one: &str| all.iter().any(|it| it == "*" || it == one);
        let some = |all: &Option<Vec<String>>, one: &str| all.as_deref().is_some_and(|all| has(all, one));
        let allows = |rule: &ResourceRule| {
            rule.resource_names.as_ref().is_none_or(Vec::is_empty)
                && has(&rule.verbs, "list")
                && some(&rule.api_groups, group)
                && some(&rule.resources, plural)
        };
        self.rules.as_ref().is_none_or(|rules| rules.iter().any(allows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_is_one_to_list_all_of_a_kind() {
        let rule = |verb: &str, group: &str, plural: &str, name: &str| ResourceRule {
            verbs: vec![verb.to_owned()],
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![plural.to_owned()]),
            resource_names: (!name.is_empty()).then(|| vec![name.to_owned()]),
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
