use super::*;
use crate::testing::commit_files;
use berth_base::model::Timestamp;

fn refused(branch: &Branch, current: Option<&CurrentState>, next: &State) -> PublishError {
    let before = branch.repo.read_ref(&branch.refs.rendered).unwrap();
    let error = branch.try_publish(current, next).unwrap_err();
    assert!(error.hint().is_some(), "{error} says what to do");
    assert_eq!(branch.repo.read_ref(&branch.refs.rendered).unwrap(), before, "nothing moved");
    error
}

#[test]
fn a_branch_that_is_not_berths_is_refused() {
    let branch = Branch::new();
    for files in [vec![("README.md", "mine")], vec![("berth.json", "{}")]] {
        commit_files(&branch.repo, &branch.refs.rendered, &files);
        let error = read_current(&branch.repo, &branch.refs.rendered).unwrap_err();
        assert!(matches!(error, PublishError::Unowned { .. }), "{error}");
        assert!(error.hint().unwrap().contains("git branch -m"));
    }
}

#[test]
fn a_newer_format_is_refused() {
    let branch = Branch::new();
    commit_files(&branch.repo, &branch.refs.rendered, &[("berth.json", "{\"format\": 3}")]);
    let error = read_current(&branch.repo, &branch.refs.rendered).unwrap_err();
    assert!(matches!(error, PublishError::NewerFormat { format: 3, .. }), "{error}");
    assert!(error.hint().is_some());
}

#[test]
fn who_comes_second_has_lost_the_race() {
    let branch = Branch::new();
    let (one, two) = (branch.state(&[("web", &["a"], "1")]), branch.state(&[("web", &["a"], "2")]));
    branch.publish(&one);
    let error = refused(&branch, None, &two);
    assert!(matches!(error, PublishError::Raced { .. }), "{error}");
    let seen = branch.current();
    branch.publish(&two);
    let error = refused(&branch, seen.as_ref(), &branch.state(&[("web", &["a"], "3")]));
    assert!(matches!(error, PublishError::Raced { .. }), "{error}");
}

#[test]
fn a_rendered_branch_that_is_gone_is_not_begun_anew() {
    let branch = Branch::new();
    let state = branch.state(&[("web", &["a"], "1")]);
    let commit = branch.publish(&state).unwrap().commit;
    let processed = Processed {
        branch: None,
        source: CommitId([0xab; 20]),
        rendered: Some(commit),
        errors: 1,
        warnings: 2,
        result: "published".to_owned(),
        held: vec!["one".to_owned()],
        rules: None,
        moment: Timestamp::from_second(7).unwrap(),
    };
    let identity = stamp(0).identity;
    write_processed(&branch.repo, &branch.refs, &processed, &identity).unwrap();
    assert_eq!(read_processed(&branch.repo, &branch.refs).unwrap(), Some(processed));
    branch.repo.delete_ref(&branch.refs.rendered, commit).unwrap();
    assert!(branch.current().is_none());
    let error = refused(&branch, None, &state);
    assert!(matches!(error, PublishError::Gone { .. }), "{error}");
    assert!(error.hint().unwrap().contains(&commit.to_string()));
}

#[test]
fn cluster_refs_alone_show_that_there_was_a_rendered_branch() {
    let branch = Branch::new();
    commit_files(&branch.repo, &branch.refs.cluster("a"), &[("x", "1")]);
    let error = refused(&branch, None, &branch.state(&[("web", &["a"], "1")]));
    assert!(matches!(error, PublishError::Gone { .. }), "{error}");
}

#[test]
fn an_empty_state_after_one_with_objects_needs_a_word() {
    let branch = Branch::new();
    branch.publish(&branch.state(&[("web", &["a", "b"], "1")]));
    let mut empty = State::default();
    empty.folders.insert("a".to_owned(), Folder::new());
    let current = branch.current();
    let error = refused(&branch, current.as_ref(), &empty);
    assert!(matches!(error, PublishError::Empty { objects: 2, clusters: 2 }), "{error}");
    branch.stamped(current.as_ref(), &empty, &stamp(100));
    assert!(branch.current().unwrap().state.folders.is_empty());
}

#[test]
fn kept_bytes_must_be_there() {
    let branch = Branch::new();
    let mut state = branch.state(&[("web", &["a"], "1")]);
    state.kept.insert("web.yaml".to_owned(), berth_base::model::ContentId([1; 20]));
    let error = refused(&branch, None, &state);
    assert!(matches!(error, PublishError::KeptIsMissing { .. }), "{error}");
}

#[test]
fn a_branch_that_was_rewritten_is_told_from_a_lost_race() {
    let branch = Branch::new();
    let one = branch.publish(&branch.state(&[("web", &["a"], "1")])).unwrap().commit;
    let seen = branch.current().unwrap();
    let two = branch.publish(&branch.state(&[("web", &["a"], "2")])).unwrap().commit;
    let refuse = |current: &CurrentState, last: Option<CommitId>| {
        refuse_rewritten(&branch.repo, &branch.refs, current, last)
    };
    // Another process published after this one had read the branch.
    assert!(matches!(refuse(&seen, Some(two)), Err(PublishError::Raced { .. })));
    let now = branch.current().unwrap();
    for last in [None, Some(one), Some(two)] {
        refuse(&now, last).unwrap();
    }
    branch.repo.move_ref(&branch.refs.rendered, Some(two), one).unwrap();
    for lost in [two, CommitId([1; 20])] {
        let error = refuse(&seen, Some(lost)).unwrap_err();
        assert!(
            matches!(error, PublishError::Rewritten { tip, last, .. } if tip == one && last == lost),
            "{error}"
        );
        assert!(error.hint().unwrap().contains(&format!("git update-ref refs/heads/berth/rendered {lost}")));
    }
}
