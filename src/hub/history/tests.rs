use super::*;
use crate::publish::own_files;
use crate::publish::{CurrentState, Published, Stamp, Summary, draft};
use crate::testing::bare;
use berth_base::model::{Contents as _, Timestamp};
use berth_base::model::{Decision, Pick};
use berth_engine::state::State;
use berth_git::{GitContents, Identity, Writer};

fn key(name: &str) -> Key {
    Key::new("example.org", "FederatedConfigMap", "shop", name)
}

fn object(name: &str) -> ObjectId {
    ObjectId::new("", "ConfigMap", "shop", name)
}

/// Publishes many states: in each, one of ten workloads leaves or joins one cluster, or changes there.
/// Returns the commits, newest last, with the workload and the cluster.
fn published(repo: &Repo, clusters: usize, count: usize) -> Vec<(CommitId, String, String)> {
    let mut state = State::default();
    let mut current: Option<CurrentState> = None;
    let mut commits = Vec::new();
    for number in 0..count {
        let (name, cluster) = (format!("m{}", number * 7 % 10), format!("c{:04}", number * 13 % clusters));
        let mut contents = GitContents::writing(repo).unwrap();
        let content = contents.put(format!("number: {number}\n").as_bytes()).unwrap();
        let path = path::of_object(&object(&name));
        state.folders.or_default(cluster.as_str()).put((path.as_str().into(), content).into());
        let known = state.decisions.get(&key(&name)).cloned();
        let mut decision = known.unwrap_or_else(|| Decision::new(key(&name), "web.yaml"));
        decision.objects = vec![object(&name)];
        if !decision.has(&cluster) {
            let mut picks: Vec<Pick> =
                decision.picks.iter().cloned().chain([Pick::of(cluster.as_str())]).collect();
            picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
            decision.picks = picks.into();
        }
        state.decisions.insert(key(&name), decision);
        let now = Timestamp::from_second(1_700_000_000 + number as i64).unwrap();
        let stamp = Stamp::new(CommitId([0xab; 20]), "more", now.as_second(), now);
        let Published::Committed(committed) =
            draft(repo, current.as_ref(), &state, &stamp, &Summary::default()).unwrap()
        else {
            panic!("nothing changed")
        };
        commits.push((committed.commit, name, cluster));
        current = Some(committed.into_current(state.clone()));
    }
    repo.flush().unwrap();
    commits
}

fn events(repo: &Repo, newest: CommitId, subject: Subject) -> Vec<Event> {
    Events::of(repo, newest, subject).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn each_subject_has_the_publications_that_changed_it() {
    let (_folder, repo) = bare();
    let commits = published(&repo, 6, 80);
    let newest = commits[79].0;
    let numbers = |subject: Subject| -> Vec<u64> {
        events(&repo, newest, subject).iter().map(|event| event.publication.trailers.seq).collect()
    };
    let expected = |is_own: &dyn Fn(&str, &str) -> bool| -> Vec<u64> {
        let own = commits.iter().enumerate().rev().filter(|(_, (_, name, cluster))| is_own(name, cluster));
        own.map(|(index, _)| index as u64 + 1).collect()
    };
    let all = Subject::Placement { key: key("m3"), cluster: None };
    assert_eq!(numbers(all), expected(&|name, _| name == "m3"));
    assert_eq!(numbers(Subject::Cluster("c0002".to_owned())), expected(&|_, cluster| cluster == "c0002"));
    let cluster = Some("c0001".to_owned());
    let copy = Subject::Object { object: object("m3"), cluster: cluster.clone() };
    let both = expected(&|name, cluster| name == "m3" && cluster == "c0001");
    assert_eq!(numbers(copy), both);
    assert_eq!(numbers(Subject::Placement { key: key("m3"), cluster }), both);
    let everywhere = events(&repo, newest, Subject::Object { object: object("m3"), cluster: None });
    assert_eq!(everywhere.len(), 8);
    let first = everywhere.last().unwrap();
    assert_eq!((first.change.joined.len(), first.change.copies.added), (1, 1));
}

#[test]
fn the_index_of_a_branch_grows_and_survives_damage_and_other_branches() {
    let (_folder, repo) = bare();
    let commits: Vec<CommitId> = published(&repo, 6, 80).into_iter().map(|(commit, ..)| commit).collect();
    let file = own_files::path(&repo, "cache/history");
    let index = |newest: CommitId| HistoryIndex::up_to(&repo, newest).unwrap().into_entries();
    let half = index(commits[39]);
    assert_eq!(half.iter().map(|entry| entry.commit).collect::<Vec<_>>(), commits[..40]);
    let text = || std::fs::read_to_string(&file).unwrap();
    let (before, whole) = (text(), index(commits[79]));
    assert_eq!(whole[..40], half);
    assert!(text().len() > before.len());
    // A question about the past leaves the file as it is.
    let grown = text();
    assert_eq!((index(commits[39]), text()), (half.clone(), grown.clone()));
    for damage in
        [String::new(), grown[..grown.len() - 9].to_owned(), grown.replace("c", "d"), "*\n".to_owned()]
    {
        std::fs::write(&file, damage).unwrap();
        assert_eq!(index(commits[79]), whole);
        assert_eq!(text(), grown);
    }
    // A branch that left the known one after half of it.
    let other = repo.commit(commits[39]).unwrap();
    let mut writer = Writer::new(&repo).unwrap();
    let message = repo.commit(commits[40]).unwrap().message;
    let tree = repo.commit(commits[40]).unwrap().tree;
    let tip = writer.commit(tree, &[other.id], &format!("{message}\n"), &Identity::default(), 7).unwrap();
    repo.flush().unwrap();
    let left = index(tip);
    assert_eq!((left.len(), &left[..40]), (41, &half[..]));
    assert_eq!(index(commits[79]), whole);
}

#[test]
fn each_64th_publication_completes_the_index() {
    let (_folder, repo) = bare();
    let commits: Vec<CommitId> = published(&repo, 6, 66).into_iter().map(|(commit, ..)| commit).collect();
    let file = own_files::path(&repo, "cache/history");
    keep(&repo, commits[62], 63);
    assert!(!file.exists());
    keep(&repo, commits[63], 64);
    assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 1 + 64);
}
