//! A forge's rules for one branch, in neutral terms.
//!
//! GitHub: <https://docs.github.com/en/rest/branches/branch-protection> and
//! <https://docs.github.com/en/rest/repos/rules>. GitLab: <https://docs.gitlab.com/api/protected_branches/>. Gitea and
//! Forgejo: `branches` and `branch_protections` of their API. Only branches and tags can have such rules: no forge has any
//! for `refs/berth/*`.

use berth_base::text::fits;
use serde_json::Value as Json;

use super::api::Api;
use super::http::ForgeError;
use crate::ci_run::Forge;

/// The rules for a branch. `None`: the forge does not show this token the rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    pub pushers: Pushers,
    /// True if the branch may be replaced by one that does not contain it.
    pub force_push: Option<bool>,
    pub deletion: Option<bool>,
    /// The approvals that a change needs.
    pub approvals: Option<u64>,
}

/// The accounts that may push to a branch without a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pushers {
    /// Everybody who may write to the repository.
    Writers,
    /// Accounts, teams and roles, as the forge names them.
    Only(Vec<String>),
    /// The exceptions of a rule, which the forge does not name.
    Excepted,
    #[default]
    NotKnown,
}

impl Api {
    /// Returns the rules for a branch, or `None` if it has none. Fails with [`ForgeError::NotFound`] if the branch is
    /// missing and no rule names it.
    pub fn protection(&self, branch: &str) -> Result<Option<Protection>, ForgeError> {
        match self.forge {
            Forge::GitHub => self.github_protection(branch),
            Forge::GitLab => self.gitlab_protection(branch),
            Forge::Gitea => self.gitea_protection(branch),
        }
    }

    /// Combines the branch's own protection with the matching rulesets. The stricter one applies.
    fn github_protection(&self, branch: &str) -> Result<Option<Protection>, ForgeError> {
        let name = branch.replace('/', "%2F");
        let rules = self.get(&format!("rules/branches/{name}?per_page=100"))?;
        let rules = github_rules(rules.as_array().map_or(&[][..], Vec::as_slice));
        let found = match self.get(&format!("branches/{name}")) {
            // A missing branch may also have rules.
            Err(ForgeError::NotFound { .. }) if rules.is_some() => return Ok(rules),
            found => found?,
        };
        if found["protected"] != true {
            return Ok(rules);
        }
        let own = match self.get(&format!("branches/{name}/protection")) {
            Ok(told) => Some(github_own(&told)),
            // Only administrators may read the protection, and a ruleset also makes a branch protected.
            Err(ForgeError::NotFound { .. } | ForgeError::NoRight { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Some(match (own, rules) {
            (Some(own), Some(rules)) => own.and(rules),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Protection::default(),
        }))
    }

    fn gitlab_protection(&self, branch: &str) -> Result<Option<Protection>, ForgeError> {
        let listed = self.get("protected_branches?per_page=100")?;
        let matching = listed.as_array().into_iter().flatten().filter(|rule| {
            let name = rule["name"].as_str().unwrap_or_default();
            name == branch || name.contains('*') && fits(name, branch)
        });
        // If several rules match, anything that one of them permits is permitted.
        let rules: Vec<&Json> = matching.collect();
        if rules.is_empty() {
            return Ok(None);
        }
        let levels = rules.iter().filter_map(|rule| rule["push_access_levels"].as_array()).flatten();
        let allowed = levels.filter(|level| level["access_level"].as_u64() != Some(0) || is_named(level));
        let approvals = self.get("approvals").ok();
        Ok(Some(Protection {
            pushers: Pushers::Only(allowed.map(|level| text(&level["access_level_description"])).collect()),
            force_push: Some(rules.iter().any(|rule| rule["allow_force_push"] == true)),
            deletion: Some(false),
            approvals: approvals.and_then(|told| told["approvals_before_merge"].as_u64()),
        }))
    }

    fn gitea_protection(&self, branch: &str) -> Result<Option<Protection>, ForgeError> {
        let found = self.get(&format!("branches/{branch}"));
        let rules = self.get("branch_protections");
        let (is_protected, rule_name, approvals) = match (found, &rules) {
            (Ok(found), _) => {
                let name = found["effective_branch_protection_name"].as_str().unwrap_or_default().to_owned();
                (found["protected"] == true, name, found["required_approvals"].as_u64())
            }
            // The name of a rule may be a pattern, which only the forge can apply.
            (Err(missing @ ForgeError::NotFound { .. }), Ok(rules)) => {
                let names = rules.as_array().into_iter().flatten().map(|rule| text(&rule["rule_name"]));
                if !names.into_iter().any(|name| name == branch) {
                    return Err(missing);
                }
                (true, branch.to_owned(), None)
            }
            (Err(error), _) => return Err(error),
        };
        if !is_protected {
            return Ok(None);
        }
        let rules = match rules {
            Ok(rules) => rules,
            // Only administrators may read them.
            Err(ForgeError::NoRight { .. } | ForgeError::NotFound { .. }) => Json::Null,
            Err(error) => return Err(error),
        };
        let mut listed = rules.as_array().into_iter().flatten();
        let rule = listed.find(|rule| rule["rule_name"] == rule_name.as_str());
        let unread = Protection { deletion: Some(false), approvals, ..Protection::default() };
        Ok(Some(rule.map_or(unread, gitea_rule)))
    }

    fn get(&self, path: &str) -> Result<Json, ForgeError> {
        self.read_of_repository(path, "read the rules for branches")
    }
}

impl Protection {
    /// Combines two sets of rules that both apply.
    fn and(self, other: Protection) -> Protection {
        let stricter = |one: Option<bool>, other: Option<bool>| match (one, other) {
            (Some(one), Some(other)) => Some(one && other),
            (one, other) => one.or(other),
        };
        Protection {
            pushers: match (self.pushers, other.pushers) {
                (Pushers::Writers | Pushers::NotKnown, pushers) => pushers,
                (pushers, _) => pushers,
            },
            force_push: stricter(self.force_push, other.force_push),
            deletion: stricter(self.deletion, other.deletion),
            approvals: self.approvals.max(other.approvals),
        }
    }
}

fn github_own(told: &Json) -> Protection {
    let names = |kind: &str, key: &str| {
        let listed = told["restrictions"][kind].as_array();
        listed.into_iter().flatten().map(|one| text(&one[key])).collect::<Vec<_>>()
    };
    let reviews = &told["required_pull_request_reviews"];
    let pushers = if told["restrictions"].is_object() {
        let teams = names("teams", "slug").into_iter().map(|team| format!("team {team}"));
        let apps = names("apps", "slug").into_iter().map(|app| format!("app {app}"));
        Pushers::Only(names("users", "login").into_iter().chain(teams).chain(apps).collect())
    } else if reviews.is_object() {
        Pushers::Excepted
    } else {
        Pushers::Writers
    };
    Protection {
        pushers,
        force_push: told["allow_force_pushes"]["enabled"].as_bool(),
        deletion: told["allow_deletions"]["enabled"].as_bool(),
        approvals: Some(reviews["required_approving_review_count"].as_u64().unwrap_or(0)),
    }
}

fn github_rules(rules: &[Json]) -> Option<Protection> {
    let of = |kind: &'static str| rules.iter().filter(move |rule| rule["type"] == kind);
    let has = |kind| of(kind).next().is_some();
    if rules.is_empty() {
        return None;
    }
    let approvals =
        of("pull_request").filter_map(|rule| rule["parameters"]["required_approving_review_count"].as_u64());
    Some(Protection {
        pushers: if has("update") || has("pull_request") { Pushers::Excepted } else { Pushers::Writers },
        force_push: Some(!has("non_fast_forward")),
        deletion: Some(!has("deletion")),
        approvals: Some(approvals.max().unwrap_or(0)),
    })
}

fn gitea_rule(rule: &Json) -> Protection {
    let names = |key: &str| rule[key].as_array().into_iter().flatten().map(text);
    let pushers = match (rule["enable_push"] == true, rule["enable_push_whitelist"] == true) {
        (false, _) => Pushers::Only(Vec::new()),
        (true, false) => Pushers::Writers,
        (true, true) => {
            let teams = names("push_whitelist_teams").map(|team| format!("team {team}"));
            let keys =
                (rule["push_whitelist_deploy_keys"] == true).then(|| "deploy keys that may write".to_owned());
            Pushers::Only(names("push_whitelist_usernames").chain(teams).chain(keys).collect())
        }
    };
    Protection {
        pushers,
        // Gitea before 1.23 had no such right.
        force_push: Some(rule["enable_force_push"] == true),
        deletion: Some(false),
        approvals: rule["required_approvals"].as_u64(),
    }
}

/// Reports whether one of GitLab's levels is for one account, group or key.
fn is_named(level: &Json) -> bool {
    ["user_id", "group_id", "deploy_key_id", "member_role_id"].iter().any(|name| level[*name].is_u64())
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::tests::client;
    use crate::testing::{Answer, Recorder};

    fn protection(
        forge: Forge,
        answers: Vec<(&'static str, Answer)>,
    ) -> Result<Option<Protection>, ForgeError> {
        let recorder = Recorder::start(move |request| {
            let found = answers.iter().find(|(line, _)| *line == request.line);
            found.map_or(Answer::new(404, &json!({"message": "Not Found"})), |(_, answer)| answer.clone())
        });
        client(forge, &recorder).protection("berth/rendered")
    }

    #[test]
    fn github_has_protections_and_rulesets_and_the_stricter_of_both_counts() {
        const BRANCH: &str = "GET /repos/acme/fleet/branches/berth%2Frendered";
        const OWN: &str = "GET /repos/acme/fleet/branches/berth%2Frendered/protection";
        const RULES: &str = "GET /repos/acme/fleet/rules/branches/berth%2Frendered?per_page=100";
        let is_protected = |yes: bool| (BRANCH, Answer::new(200, &json!({"protected": yes})));
        let rules = |list: serde_json::Value| (RULES, Answer::new(200, &list));
        assert_eq!(protection(Forge::GitHub, vec![is_protected(false), rules(json!([]))]), Ok(None));
        // The branch is missing.
        let missing = protection(Forge::GitHub, vec![rules(json!([]))]);
        assert!(matches!(missing, Err(ForgeError::NotFound { .. })), "{missing:?}");
        let ruleset = json!([{"type": "update", "ruleset_source_type": "Repository", "ruleset_id": 42}, {"type": "deletion"}]);
        let of_ruleset = Protection {
            pushers: Pushers::Excepted,
            force_push: Some(true),
            deletion: Some(false),
            approvals: Some(0),
        };
        let ruled = |more| [vec![rules(ruleset.clone())], more].concat();
        for answers in [ruled(vec![]), ruled(vec![is_protected(false)]), ruled(vec![is_protected(true)])] {
            assert_eq!(protection(Forge::GitHub, answers), Ok(Some(of_ruleset.clone())));
        }
        let own = json!({"required_pull_request_reviews": {"required_approving_review_count": 2},
        "restrictions": {"users": [{"login": "berth-bot"}], "teams": [{"slug": "ops"}], "apps": [{"slug": "berth"}]},
        "allow_force_pushes": {"enabled": false}, "allow_deletions": {"enabled": true}});
        let both = ruled(vec![is_protected(true), (OWN, Answer::new(200, &own))]);
        let names = ["berth-bot", "team ops", "app berth"].map(str::to_owned).to_vec();
        let expected = Protection {
            pushers: Pushers::Only(names),
            force_push: Some(false),
            deletion: Some(false),
            approvals: Some(2),
        };
        assert_eq!(protection(Forge::GitHub, both), Ok(Some(expected)));
        // The token may read neither.
        let unread = vec![is_protected(true), rules(json!([]))];
        assert_eq!(protection(Forge::GitHub, unread), Ok(Some(Protection::default())));
    }

    #[test]
    fn gitlab_permits_what_any_matching_rule_permits() {
        const RULES: &str = "GET /projects/acme%2Ffleet/protected_branches?per_page=100";
        const APPROVALS: &str = "GET /projects/acme%2Ffleet/approvals";
        let rules = json!([
            {"name": "main", "push_access_levels": [{"access_level": 40, "access_level_description": "Maintainers"}],
                "allow_force_push": true},
            {"name": "berth/*", "push_access_levels": [
                {"id": 1, "access_level": 0, "access_level_description": "No one"},
                {"id": 2, "access_level": 40, "access_level_description": "Deploy key", "deploy_key_id": 1}],
                "allow_force_push": false},
        ]);
        let answers = vec![
            (RULES, Answer::new(200, &rules)),
            (APPROVALS, Answer::new(200, &json!({"approvals_before_merge": 3}))),
        ];
        let expected = Protection {
            pushers: Pushers::Only(vec!["Deploy key".to_owned()]),
            force_push: Some(false),
            deletion: Some(false),
            approvals: Some(3),
        };
        assert_eq!(protection(Forge::GitLab, answers), Ok(Some(expected)));
        assert_eq!(protection(Forge::GitLab, vec![(RULES, Answer::new(200, &json!([])))]), Ok(None));
    }
}
