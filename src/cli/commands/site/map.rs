//! `berth map`: the map of the page as text, for a terminal.

use super::gathered::Gathered;
use super::{KnownHistory, PageOptions, stamp};
use crate::flags::fleet::RepoArg;
use crate::flags::state::{Located, StateArgs};
use crate::output::ui::{Tone, Ui};
use crate::process::exit::{CommandError, Exit, Outcome};
use berth_base::diag::harmless_line;
use berth_base::text::{counted, some_of};
use berth_site::{CellState, MapRoom, MapRow, TextMap};

/// The width of the map where it is not a terminal's, and the widest column of names.
const WIDTH: usize = 80;
const LONGEST_NAME: usize = 28;
/// The narrowest map beside the names.
const NARROWEST: usize = 20;
/// The number of labels in an error.
const MOST_LABELS: usize = 8;

/// Show the fleet as a map of placements and clusters
///
/// Each row is a placement, each column a cluster, grouped by a label, and each mark the state of a copy, as on the page of
/// `berth site`. What does not fit is put together: a row is then a namespace, a column several clusters, and the mark is
/// the worst state among them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  berth map\n  berth map --by region\n  berth map --ascii --rows 500")]
pub(crate) struct MapArgs {
    /// Group the clusters by this label, in place of the one that groups best
    #[arg(long, value_name = "LABEL")]
    by: Option<String>,
    /// Use letters in place of signs
    #[arg(long)]
    ascii: bool,
    /// Show placements one by one up to this number, and beyond it their namespaces
    #[arg(long, value_name = "COUNT", default_value_t = 60)]
    rows: usize,
    #[command(flatten)]
    repo: RepoArg,
    #[command(flatten)]
    state: StateArgs,
}

pub(crate) fn cmd_map(args: &MapArgs, ui: &Ui) -> Outcome {
    let options = PageOptions { history: 1, causes: 0, ..PageOptions::of(&args.state) };
    let located = Located::open(&args.repo, &args.state, ui)?;
    let inputs = stamp::digest(&options, located.opened())?;
    let gathered = Gathered::read(&options, &located, inputs, &mut KnownHistory::default(), ui)?;
    let names = gathered.names().map(|name| name.chars().count()).max().unwrap_or_default();
    let names = names.clamp(1, LONGEST_NAME);
    let width = ui.out_width().unwrap_or(WIDTH).saturating_sub(names + 1).max(NARROWEST);
    let room = MapRoom { width, rows: args.rows };
    let map = gathered.with_inputs(|inputs| TextMap::of(inputs, args.by.as_deref(), room));
    let map = map.map_err(|known| {
        let by = args.by.as_deref().unwrap_or_default();
        let error = CommandError::usage(format!("no cluster has the label `{by}`"));
        error.hint(match known.is_empty() {
            true => "no cluster has labels in this clone".to_owned(),
            false => format!("clusters have {}", some_of(&known, MOST_LABELS)),
        })
    })?;
    let drawing = Drawing { names, groups: widths(&map, width), marks: marks(args.ascii), ui };
    ui.out(&text(&map, &drawing));
    Ok(Exit::Done)
}

/// Returns the widths of the groups: those of their titles, if they all fit, or else of their columns.
fn widths(map: &TextMap, room: usize) -> Vec<usize> {
    let of_title =
        |(value, columns): &(String, usize)| harmless_line(title(value)).chars().count().max(*columns);
    let wide: Vec<usize> = map.groups.iter().map(of_title).collect();
    let is_fitting = wide.iter().sum::<usize>() + wide.len() <= room + 1;
    if is_fitting { wide } else { map.groups.iter().map(|(_, columns)| *columns).collect() }
}

/// One mark for each state: the more ink, the more urgent.
fn marks(ascii: bool) -> &'static str {
    if ascii { ".o-+~?HX" } else { "·▪▫◧◆◌▨✖" }
}

struct Drawing<'d> {
    /// The width of names.
    names: usize,
    /// The width of each group.
    groups: Vec<usize>,
    marks: &'static str,
    ui: &'d Ui,
}

impl Drawing<'_> {
    fn mark(&self, state: CellState) -> String {
        let mark: String = self.marks.chars().skip(usize::from(state.number())).take(1).collect();
        let tone = match state {
            CellState::Published | CellState::Waits => Tone::Faint,
            CellState::InSync => Tone::Good,
            CellState::Progressing => Tone::Strong,
            CellState::Drifted | CellState::Silent | CellState::Held => Tone::Warn,
            CellState::Failing => Tone::Bad,
        };
        self.ui.tint(&mark, tone)
    }

    fn row(&self, row: &MapRow, groups: &[(String, usize)]) -> String {
        let (mut cells, mut widths) = (row.cells.iter(), self.groups.iter());
        let group = |(_, columns): &(String, usize)| -> String {
            let own = cells.by_ref().take(*columns);
            let marks: String =
                own.map(|cell| cell.map_or_else(|| " ".to_owned(), |cell| self.mark(cell))).collect();
            let rest = widths.next().copied().unwrap_or_default().saturating_sub(*columns);
            marks + &" ".repeat(rest)
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        format!("{} {}", self.padded(&row.name, self.names), groups.join(" "))
    }

    /// Returns a text in exactly this many characters.
    fn padded(&self, text: &str, width: usize) -> String {
        let text = harmless_line(text);
        let cut: String = match text.chars().count() > width {
            true => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
            false => text.into_owned(),
        };
        format!("{cut:width$}")
    }
}

fn text(map: &TextMap, drawing: &Drawing<'_>) -> String {
    let mut lines = Vec::new();
    let by = map.by.as_deref().map(|by| format!("{by}:")).unwrap_or_default();
    let titles = map.groups.iter().zip(&drawing.groups);
    let titles: Vec<String> =
        titles.map(|((value, _), width)| drawing.padded(title(value), *width)).collect();
    if map.by.is_some() {
        lines.push(
            format!("{} {}", drawing.padded(&by, drawing.names), titles.join(" ")).trim_end().to_owned(),
        );
    }
    lines.extend(map.rows.iter().map(|row| drawing.row(row, &map.groups).trim_end().to_owned()));
    lines.push(String::new());
    let total =
        |(state, count): &(CellState, usize)| format!("{} {} {count}", drawing.mark(*state), state.word());
    lines.push(map.totals.iter().rev().map(total).collect::<Vec<String>>().join("  "));
    if map.clusters_in_a_column > 1 {
        lines.push(format!("a column is up to {}", counted(map.clusters_in_a_column, "cluster")));
    }
    lines.join("\n")
}

fn title(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}
