//! Tests of the page's core, over values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::diag::Pos;
use berth_base::model::placement::{Filter, Rule};
use berth_base::model::{
    Action, Applies, Cluster, ClusterStatus, Decision, Fleet, Key, ObjectId, Operation, Override, Pick,
    Placement, Pointer, Policy, Requirement, Selector, Shared, Source, Timestamp, Verb, Workload,
};
use berth_engine::consequences::field_changes::HIDDEN;
use berth_engine::state::State;

use crate::assets::ASSETS;
use crate::attention;
use crate::block::{Block, fnv1a};
use crate::cell::CellState;
use crate::document::set_sentence;
use crate::form::{
    Attention, ChangesForm, ClusterDetails, FORMAT, Head, Names, PlacementDetails, Stamp, runs,
};
use crate::inputs::{ChangeCounts, Links, Publication, Shown, SiteInputs, SourceProgress};
use crate::site::Site;
use crate::text_map::{MapRoom, TextMap};
use crate::{placements, publications};

/// A fleet of clusters in two regions, and placements that pick one of them.
struct World {
    fleet: Fleet,
    state: State,
    name: String,
    subject: String,
}

fn region(index: usize) -> &'static str {
    if index.is_multiple_of(2) { "north" } else { "south" }
}

impl World {
    fn new(clusters: usize, placements: usize) -> World {
        let mut world = World {
            fleet: Fleet::default(),
            state: State::default(),
            name: "fleet".to_owned(),
            subject: String::new(),
        };
        for index in 0..clusters {
            let labels = BTreeMap::from([("region".to_owned(), region(index).to_owned())]);
            let name = format!("c{index:03}");
            let cluster = Cluster { name: name.as_str().into(), labels, ..Cluster::default() };
            world.fleet.clusters.insert(name, Shared::from(cluster));
        }
        for index in 0..placements {
            world.place(&format!("p{index:03}"), region(index));
        }
        world
    }

    /// Places an object in the clusters of a region.
    fn place(&mut self, name: &str, wanted: &str) {
        let key = Key::new("example.com", "Thing", "shop", name);
        let selector =
            Selector { requirements: vec![Requirement::Is("region".to_owned(), wanted.to_owned())] };
        let filters = vec![Filter { rule: Rule::Labels(selector), by: None }];
        let source = Source::Own(Box::new(Policy { filters, ..Policy::BLANK }));
        let placement = Placement::new(key.clone(), Pos::new("things.yaml", 3, 1), source);
        self.fleet.placements.insert(key.clone(), Shared::from(placement));
        let mut decision = Decision::new(key.clone(), "things.yaml");
        decision.objects = vec![ObjectId::new("", "ConfigMap", "shop", name)];
        let clusters = self.fleet.clusters.iter().filter(|(_, cluster)| cluster.labels["region"] == wanted);
        let reason = format!("label region={wanted}");
        let pick = |name: &String| Pick::of(name.as_str()).with(|details| details.reason.clone_from(&reason));
        decision.picks = clusters.map(|(name, _)| pick(name)).collect::<Vec<_>>().into();
        self.state.decisions.insert(key, decision);
    }

    fn site(&self) -> Site {
        self.with_inputs(Site::of)
    }

    fn with_inputs<T>(&self, make: impl FnOnce(&SiteInputs<'_>) -> T) -> T {
        let moment = Timestamp::from_second(1_000).unwrap();
        let history = [Publication {
            sequence: 7,
            message: "berth: first\n".to_owned(),
            subject: Some(self.subject.clone()),
            ..Publication::default()
        }];
        make(&SiteInputs {
            name: &self.name,
            shown: Shown {
                sequence: 7,
                commit: "c0ffee",
                source: None,
                subject: "",
                moment,
                published: moment,
            },
            now: moment,
            state: &self.state,
            fleet: Some(&self.fleet),
            members: None,
            rollouts: &[],
            held: &[],
            source: SourceProgress::default(),
            change: None,
            history: &history,
            links: None,
            stamp: Stamp::default(),
        })
    }
}

fn text<'s>(site: &'s Site, key: &str) -> &'s str {
    let path = format!("data/{key}.{}.js", site.head.files[key]);
    let file = site.files.iter().find(|file| file.path == path).expect("the file of the block");
    std::str::from_utf8(&file.bytes).expect("text")
}

fn details(site: &Site, id: &str) -> PlacementDetails {
    let index = fnv1a(id.as_bytes()) % site.head.blocks.placements;
    let block: BTreeMap<String, PlacementDetails> = Block::read(text(site, &format!("p-{index}"))).unwrap();
    block[id].clone()
}

#[test]
fn a_block_reads_as_it_was_written_and_is_named_by_its_content() {
    let form = BTreeMap::from([("a \u{2028}\"</script>", 1)]);
    let block = Block::of("names", &form);
    assert!(block.text.starts_with("berth(\"names\",\"") && !block.text.contains("</script>"));
    assert_eq!(
        Block::read::<BTreeMap<String, u32>>(&block.text).unwrap().into_values().collect::<Vec<_>>(),
        [1]
    );
    assert_eq!(block, Block::of("names", &form));
    assert_ne!(block.path(), Block::of("names", &1).path());
    for broken in ["", "berth(\"a\")", "berth(\"a\",\"?\")", "berth(\"a\",\"AAAA\")"] {
        assert!(Block::read::<u32>(broken).is_err(), "{broken}");
    }
}

#[test]
fn a_text_map_fits_its_width_and_has_the_worst_state_of_each_place() {
    let map = |world: &World, by: Option<&str>, width: usize, rows: usize| {
        world.with_inputs(|inputs| TextMap::of(inputs, by, MapRoom { width, rows }))
    };
    let world = World::new(6, 2);
    let whole = map(&world, Some("region"), 40, 10).expect("a map");
    assert_eq!(whole.groups, [("north".to_owned(), 3), ("south".to_owned(), 3)]);
    let published = Some(CellState::Published);
    assert_eq!(whole.rows[0].cells, [published, published, published, None, None, None]);
    assert_eq!((whole.rows.len(), whole.clusters_in_a_column), (2, 1));
    assert_eq!(map(&world, Some("tier"), 40, 10), Err(BTreeSet::from(["region".to_owned()])));
    let large = World::new(500, 90);
    for width in [1, 2, 3, 7, 40, 79, 499, 2_000] {
        let map = map(&large, None, width, 60).expect("a map");
        assert_eq!(map.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["shop"]);
        let columns: usize = map.groups.iter().map(|(_, columns)| columns).sum();
        assert_eq!(map.rows[0].cells.len(), columns, "{width}");
        assert!(columns + map.groups.len() - 1 <= width.max(3), "{width}: {:?}", map.groups);
        assert!(map.rows[0].cells.iter().all(Option::is_some), "{width}");
    }
}

#[test]
fn runs_are_pairs_of_a_length_and_a_value() {
    assert_eq!(runs([4, 4, 4, 0, 4]), [3, 4, 1, 0, 1, 4]);
    assert_eq!(runs([]), Vec::<u32>::new());
}

#[test]
fn the_head_is_last_and_names_every_block() {
    let site = World::new(6, 4).site();
    assert_eq!(site.files.last().map(|file| file.path.as_str()), Some("data/head.js"));
    let is_block = |path: &str| path.starts_with("data/") && path != Site::HEAD;
    assert_eq!(site.files.iter().filter(|file| is_block(&file.path)).count(), site.head.files.len());
    let names: Names = Block::read(text(&site, "names")).unwrap();
    // Clusters with equal labels stand side by side, so that a placement is one run of the map.
    assert_eq!(names.clusters, ["c000", "c002", "c004", "c001", "c003", "c005"]);
    let map = Block::read_bytes(text(&site, "map-0")).unwrap();
    assert_eq!(map[..6], [1, 0, 3 * 8, 1, 3, 3 * 8], "one run for each of the first two placements");
}

#[test]
fn a_change_of_one_placement_changes_its_own_blocks_alone() {
    let mut world = World::new(6, 400);
    let before = world.site();
    world.place("p000", "south");
    let after = world.site();
    let changed: BTreeSet<&str> = after
        .head
        .files
        .iter()
        .filter(|(key, hash)| before.head.files.get(*key) != Some(hash))
        .map(|(key, _)| key.as_str())
        .collect();
    let index = fnv1a(b"Thing/shop/p000") % after.head.blocks.placements;
    let own = format!("p-{index}");
    assert_eq!(changed, BTreeSet::from(["map-0", own.as_str()]));
}

#[test]
fn equal_clusters_have_equal_reasons_and_each_rule_says_what_it_drops() {
    let site = World::new(6, 2).site();
    let north = details(&site, "Thing/shop/p000");
    assert_eq!(north.at, ("things.yaml".to_owned(), 3));
    let refusal = "label region=north is required, the cluster has region=south";
    assert_eq!(north.reasons, ["label region=north", refusal]);
    assert_eq!(north.reason_of, [3, 0, 3, 1]);
    assert_eq!((north.funnel[0].left, north.funnel[0].dropped.clone()), (3, vec![(1, 3)]));
    assert_eq!(north.rule, "every cluster that passes");
}

#[test]
fn a_kept_pick_makes_its_class_explained_one_by_one() {
    let mut world = World::new(6, 1);
    let key = Key::new("example.com", "Thing", "shop", "p000");
    let mut decision = world.state.decisions.get(&key).unwrap().clone();
    decision.picks = vec![Pick::of("c000").with(|details| details.reason = "stays".to_owned())].into();
    world.state.decisions.insert(key, decision);
    let north = details(&world.site(), "Thing/shop/p000");
    assert_eq!(north.reasons[north.reason_of[1] as usize], "stays");
}

#[test]
fn a_folder_gets_what_it_lacks_and_loses_only_stale_blocks() {
    let site = World::new(6, 4).site();
    let mut existing: BTreeSet<String> = site.files.iter().map(|file| file.path.clone()).collect();
    assert!(site.changes(&existing, &|_| true).write.is_empty());
    let stale = ["data/.n-0.01234567.js.berth-new", "data/n-0.01234567.js"];
    existing.extend(stale.map(str::to_owned));
    let others = ["data/main.abcdef12.js", "data/notes.js", ".x.berth-new", "CNAME"].map(str::to_owned);
    assert!(!others.iter().any(|path| Site::is_own(path)));
    existing.extend(others);
    existing.remove("index.html");
    let names = format!("data/names.{}.js", site.head.files["names"]);
    let changes = site.changes(&existing, &|file| file.path != "data/head.js" && file.path != names);
    let written: Vec<&str> = changes.write.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(written, [names.as_str(), "index.html", "data/head.js"]);
    assert_eq!(changes.remove, stale);
    assert!(Site::is_removable(stale[1], b"berth(\"n-0\",") && !Site::is_removable(stale[1], b"other"));
}

#[test]
fn a_head_shows_whether_its_page_is_whole_and_until_when_it_is_true() {
    let site = World::new(6, 4).site();
    let text = site.files.last().map(|file| std::str::from_utf8(&file.bytes).unwrap()).unwrap();
    let head = Site::read_head(text).unwrap();
    assert_eq!(head, site.head);
    let bytes = |path: &str| site.files.iter().find(|file| file.path == path).map(|file| file.bytes.clone());
    assert!(Site::is_whole(&head, &bytes));
    let map = format!("data/map-0.{}.js", head.files["map-0"]);
    for path in ["page/map.js", &map] {
        assert!(!Site::is_whole(&head, &|name| bytes(name).filter(|_| name != path)), "{path} is missing");
        let cut =
            |name: &str| bytes(name).map(|bytes| if name == path { bytes[1..].to_vec() } else { bytes });
        assert!(!Site::is_whole(&head, &cut), "{path} is damaged");
    }
    let stamp = Stamp { inputs: "a".to_owned(), until: Some(10) };
    assert_eq!([stamp.holds("a", 9), stamp.holds("a", 10), stamp.holds("b", 9)], [true, false, false]);
}

#[test]
fn texts_of_the_fleet_are_escaped_and_are_no_placeholders() {
    let mut world = World::new(2, 1);
    world.name = "{{first}}<b onclick='x'>&\u{202e}\u{61c}".to_owned();
    let site = world.site();
    let index = site.files.iter().find(|file| file.path == "index.html").unwrap();
    let index = std::str::from_utf8(&index.bytes).unwrap();
    assert!(index.contains("{{first}}&lt;b onclick=&#39;x&#39;&gt;&amp;\u{fffd}\u{fffd}"), "{index}");
    assert_eq!(index.matches("<h1>").count(), 1);
}

#[test]
fn links_are_guessed_for_known_forges_without_credentials() {
    let file = |address: &str| Links::guess(address).map(|links| links.file);
    let github = "https://github.com/team/fleet/blob/{commit}/{file}#L{line}";
    for address in [
        "https://user:secret@github.com/team/fleet.git",
        "git@github.com:team/fleet.git",
        "ssh://git@github.com:22/team/fleet",
    ] {
        assert_eq!(file(address).as_deref(), Some(github), "{address}");
    }
    let gitea = "https://gitea.example.com/team/fleet/src/commit/{commit}/{file}#L{line}";
    assert_eq!(file("https://gitea.example.com/team/fleet").as_deref(), Some(gitea));
    for unknown in ["https://git.example.com/fleet", "/srv/fleet.git", "https://github.com/\"><script>", ""] {
        assert_eq!(file(unknown), None, "{unknown}");
    }
}

#[test]
fn the_first_sentence_claims_no_more_than_the_data() {
    let of = |items: usize, state: Option<CellState>, cluster: &str, has_reports: bool| {
        let mut head = Head { has_reports, totals: vec![0; CellState::ALL.len()], ..Head::default() };
        head.attention = vec![Attention::default(); items];
        head.clusters = BTreeMap::from([(cluster.to_owned(), 1)]);
        head.shown.sequence = 7;
        if let Some(state) = state {
            head.totals[state as usize] = 2;
        }
        set_sentence(&mut head);
        (head.sentence, head.title)
    };
    for (head, sentence, title) in [
        (of(0, None, "in sync", true), "Every cluster has what the source says.", "all in sync"),
        (of(0, None, "in sync", false), "Number 7 is published.", "number 7"),
        (of(0, None, "behind", true), "Nothing is wrong; 1 cluster is on its way.", "1 on its way"),
        (of(0, None, "problems", true), "1 cluster is not in order.", "1 not in order"),
        (of(0, Some(CellState::Silent), "in sync", false), "2 copies are not in order.", "2 not in order"),
        (
            of(0, Some(CellState::Waits), "in sync", true),
            "Nothing is wrong; 2 copies are on their way.",
            "2 on their way",
        ),
        (of(2, None, "in sync", true), "2 things differ from what the source says.", "2 to look at"),
    ] {
        assert_eq!(head, (sentence.to_owned(), title.to_owned()));
    }
}

#[test]
fn recorded_silence_has_an_item_without_reports() {
    let mut world = World::new(2, 1);
    let silent = ClusterStatus { silent: Timestamp::from_second(500).ok(), ..ClusterStatus::default() };
    world.state.facts.insert("c000".to_owned(), Shared::from(silent));
    let head = world.site().head;
    assert_eq!(head.attention[0].title, "The member of c000 was silent");
    assert_eq!((head.attention[0].cells, head.totals[CellState::Silent as usize]), (1, 1));
}

#[test]
fn long_words_of_others_are_cut() {
    let mut world = World::new(2, 1);
    world.subject = "x".repeat(100_000);
    let head = world.site().head;
    assert!(head.publications[0].title.len() < 1_000, "{}", head.publications[0].title.len());
}

#[test]
fn scripts_read_the_format_that_is_written() {
    let data = ASSETS.iter().find(|(path, _)| *path == "page/data.js").expect("a script").1;
    assert!(data.contains(&format!("const FORMAT = {FORMAT};")));
}

#[test]
fn names_are_encoded_as_the_scripts_do() {
    // `encodeURIComponent` leaves A-Z a-z 0-9 - _ . ! ~ * \' ( ) as they are.
    assert_eq!(attention::address("K/a-_.!~*'()/b c#?%ü"), "K/a-_.!~*'()/b%20c%23%3F%25%C3%BC");
}

#[test]
fn a_command_to_paste_has_no_names_that_a_shell_runs() {
    assert_eq!(attention::shell_word("Thing.example.com/shop/web-1_a"), "Thing.example.com/shop/web-1_a");
    assert_eq!(attention::shell_word("a;b 'c"), "'a;b '\\''c'");
}

#[test]
fn changes_that_are_not_known_are_not_none() {
    let unknown = Publication::default();
    assert_eq!(publications::line(&unknown).changes, None);
    let none = Publication { changes: Some(ChangeCounts::default()), ..Publication::default() };
    assert_eq!(publications::line(&none).changes, Some(ChangesForm::default()));
}

#[test]
fn an_override_without_a_template_shows_no_value() {
    let key = Key::new("", "FederatedSecret", "shop", "key");
    let operation = Operation {
        verb: Verb::Add,
        path: Pointer::parse("/stringData/token").unwrap(),
        from: None,
        value: Some(serde_json::json!("VALUE")),
        at: Pos::file("x.yaml"),
        from_the_end: false,
        replace_may_add: false,
        variables: false,
    };
    let change = Override {
        by: Arc::new(key.clone()),
        origin: Pos::file("x.yaml"),
        clusters: Applies::To("c000".to_owned()),
        objects: None,
        action: Action::Patch(vec![operation].into()),
    };
    let workload =
        Workload { overrides: vec![change].into(), ..Workload::new(key, Pos::file("x.yaml"), Vec::new()) };
    let shown = placements::overrides(&workload);
    assert_eq!(shown[0].after.as_deref(), Some(HIDDEN));
}

#[test]
fn long_labels_are_cut_and_still_group() {
    let mut world = World::new(4, 1);
    let long = "x".repeat(100_000);
    for (name, end) in [("c000", "a"), ("c001", "b"), ("c002", "a"), ("c003", "b")] {
        let labels = BTreeMap::from([("region".to_owned(), format!("{long}{end}"))]);
        let cluster = Cluster { name: name.into(), labels, ..Cluster::default() };
        world.fleet.clusters.insert(name.to_owned(), Shared::from(cluster));
    }
    let site = world.site();
    let names: Names = Block::read(text(&site, "names")).unwrap();
    assert_eq!(names.labels["region"].of, [2, 0, 2, 1]);
    assert!(names.labels["region"].values.iter().all(|value| value.len() < 1_000));
    let details: BTreeMap<String, ClusterDetails> = Block::read(text(&site, "c-0")).unwrap();
    assert!(details["c000"].labels["region"].len() < 1_000);
}
