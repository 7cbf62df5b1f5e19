//! CEL expressions over clusters. Each expression runs once per cluster, however many placements use it.
//!
//! A run that ends with an error, or with a value other than true, does not match. The reader of the
//! placement has reported faults of the expression's text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::remembered::Remembered;
use berth_base::model::{Cluster, ClusterView, Expression};
use berth_cel::{Fault, Names, Program, Value, Variable};

/// The views and verdicts computed so far.
#[derive(Default)]
pub(super) struct Ran {
    shown: Remembered<ClusterView, ShownParts>,
    by_expression: Remembered<Expression, Arc<Column>>,
}

/// The parts of the clusters that a view shows, by row.
type ShownParts = Arc<Remembered<usize, Arc<Value>>>;

/// An expression's verdicts by row.
pub(super) struct Column {
    view: ClusterView,
    /// `None` for a text that cannot be read: it matches nothing, and the dialect has reported it.
    program: Option<Program>,
    shown: ShownParts,
    verdicts: Vec<AtomicU8>,
}

const UNKNOWN: u8 = 0;
const REFUSES: u8 = 1;
const MATCHES: u8 = 2;

impl Ran {
    pub(super) fn column(&self, clusters: usize, expression: &Expression) -> Arc<Column> {
        self.by_expression.get_or_make(expression, || {
            let view = expression.view;
            let shown = self.shown.get_or_make(&view, ShownParts::default);
            let methods: Vec<&str> = view.methods.iter().map(|(name, _)| *name).collect();
            let names = Names { variables: &[Variable::any(view.name)], methods: &methods };
            let program = Program::compile(&expression.text, names).ok();
            let verdicts = (0..clusters).map(|_| AtomicU8::new(UNKNOWN)).collect();
            Column { view, program, shown, verdicts }.into()
        })
    }
}

impl Column {
    pub(super) fn matches(&self, row: usize, cluster: &Cluster) -> bool {
        let verdict = &self.verdicts[row];
        match verdict.load(Ordering::Relaxed) {
            UNKNOWN => {
                let matches = matches!(self.run(row, cluster), Some(Ok(Value::Bool(true))));
                verdict.store(if matches { MATCHES } else { REFUSES }, Ordering::Relaxed);
                matches
            }
            known => known == MATCHES,
        }
    }

    /// Returns the reason why a cluster does not match.
    pub(super) fn why(&self, row: usize, cluster: &Cluster) -> String {
        match self.run(row, cluster) {
            None => "the expression cannot be read".to_owned(),
            Some(Ok(Value::Bool(_))) => "it gives false".to_owned(),
            Some(Ok(_)) => "its result is not a boolean".to_owned(),
            Some(Err(fault)) => format!("it fails {fault}"),
        }
    }

    fn run(&self, row: usize, cluster: &Cluster) -> Option<Result<Value, Fault>> {
        let shown = self.shown.get_or_make(&row, || Value::from(&(self.view.shown)(cluster)).into());
        let answer = |method: usize, argument: &str| {
            let (name, of) = self.view.methods.get(method).ok_or("there is no such method")?;
            let json = of(cluster, argument);
            json.map(|json| Value::from(&json))
                .ok_or_else(|| format!("`{name}` knows no `{argument}` of this cluster"))
        };
        Some(self.program.as_ref()?.run(&shown, &answer))
    }
}
