//! Hooks of charts as objects in waves: those before an installation or upgrade come first and must be healthy, and those
//! after it come last.

use serde_json::{Value as Json, json};

use berth_base::diag::{Diagnostic, Pos};
use berth_base::model::annotation::{RECREATE, WAVE};
use berth_base::yaml::{self, Limits};
use berth_engine::load::RenderSource;
use berth_sources::Hook;

/// The waves of hooks without a weight. Weights move a hook at most this far.
const BEFORE: i64 = -1_000;
const AFTER: i64 = 1_000;
const HEAVIEST: i64 = 999;

/// Kinds that cannot be changed, so that a changed hook is deleted and created again, as Helm does.
const RUN_ONCE: [&str; 2] = ["Job", "Pod"];

/// Returns the wave of a hook. `None` if it waits for a moment that berth does not have, such as a removal.
pub(super) fn wave_of(hook: &Hook) -> Option<i64> {
    let has = |wanted: [&str; 2]| hook.events.iter().any(|event| wanted.contains(&&**event));
    let base = match () {
        () if has(["pre-install", "pre-upgrade"]) => BEFORE,
        () if has(["post-install", "post-upgrade"]) => AFTER,
        () => return None,
    };
    Some(base + hook.weight.clamp(-HEAVIEST, HEAVIEST))
}

/// Returns the texts of the hooks that are objects in waves, each with its template.
pub(super) fn in_waves(hooks: &[Hook]) -> Vec<(&str, String)> {
    let waved = hooks.iter().filter_map(|hook| Some((hook, wave_of(hook)?)));
    waved.map(|(hook, wave)| (template_of(&hook.file), in_wave(hook, wave))).collect()
}

/// Returns the text of a hook with its wave. Annotations of the chart's author win.
fn in_wave(hook: &Hook, wave: i64) -> String {
    let read = yaml::read(hook.text.as_bytes(), &Limits::default());
    // Text that is not one readable object is refused like that of a template.
    let [document] = read.documents.as_slice() else { return hook.text.clone() };
    let mut object = document.root.to_json();
    let Some(metadata) = object.get_mut("metadata").and_then(Json::as_object_mut) else {
        return hook.text.clone();
    };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    let Some(annotations) = annotations.as_object_mut() else { return hook.text.clone() };
    annotations.entry(WAVE).or_insert_with(|| wave.to_string().into());
    if RUN_ONCE.contains(&&*hook.kind) {
        annotations.entry(RECREATE).or_insert_with(|| "allowed".into());
    }
    yaml::emit(&object)
}

/// Refuses a hook, with what to do.
pub(super) fn refusal(source: &RenderSource, hook: &Hook) -> Diagnostic {
    let message = format!("{}, which berth does not run", named(source, hook));
    let hint = match wave_of(hook) {
        Some(_) => format!(
            "write `hooks: waves` into {} to make an object of it, or `hooks: skip` to leave hooks out",
            source.at
        ),
        None => format!("write `hooks: skip` into {} to leave hooks out", source.at),
    };
    Diagnostic::error(place(source, hook), message).hint(hint)
}

/// Warns of a hook that is left out.
pub(super) fn left_out(source: &RenderSource, hook: &Hook) -> Diagnostic {
    let message = format!("{}, a moment that berth does not have: it is left out", named(source, hook));
    Diagnostic::warning(place(source, hook), message)
}

fn named(source: &RenderSource, hook: &Hook) -> String {
    format!("{}: the {} `{}` is a hook ({})", source.shown(), hook.kind, hook.name, hook.events.join(", "))
}

fn place(source: &RenderSource, hook: &Hook) -> Pos {
    Pos::file(format!("{}/{}", source.path, template_of(&hook.file)))
}

/// Returns the path of a template below its chart, whose name is the first part.
pub(super) fn template_of(file: &str) -> &str {
    file.split_once('/').map_or(file, |(_, below)| below)
}
