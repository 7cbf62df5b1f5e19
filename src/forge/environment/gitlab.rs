//! The variables of GitLab's merge request pipelines.

use super::{Forge, Found, Given, Links, Variables, value};

pub(super) fn find(variables: &Variables) -> Found {
    let owned = |name: &str| value(variables, name).map(str::to_owned);
    let number = value(variables, "CI_MERGE_REQUEST_IID");
    // Set in pipelines of merged results only, where `CI_COMMIT_SHA` is the merge. Else that is the head.
    let source = owned("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA");
    let checked_out = owned("CI_COMMIT_SHA").filter(|_| number.is_some());
    let project_page = value(variables, "CI_MERGE_REQUEST_PROJECT_URL");
    let page =
        project_page.zip(number).map(|(project, number)| format!("{project}/-/merge_requests/{number}"));
    let target_project = value(variables, "CI_MERGE_REQUEST_PROJECT_ID");
    Found {
        values: Given {
            forge: Some(Forge::GitLab),
            api: owned("CI_API_V4_URL"),
            repository: target_project.map(str::to_owned),
            number: number.and_then(|number| number.parse().ok()),
            base: owned("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
            // Not `CI_MERGE_REQUEST_DIFF_BASE_SHA`, which is the merge base.
            base_commit: owned("CI_MERGE_REQUEST_TARGET_BRANCH_SHA"),
            merge_commit: source.as_ref().and(checked_out.clone()),
            head_commit: source.or(checked_out),
        },
        head_branch: owned("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"),
        is_fork: value(variables, "CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != target_project,
        links: Links {
            pull_request: page,
            repository: project_page.map(str::to_owned),
            run: owned("CI_JOB_URL"),
        },
    }
}
