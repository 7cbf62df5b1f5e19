//! The renderer of charts and bases. Its own tests, in Go, hold it against the real helm and kustomize.

use std::path::Path;
use std::process::Command;

use crate::charts::packagers;
use crate::support::Ran;

#[test]
#[ignore = "needs helm and kustomize"]
fn charts_and_bases_are_rendered_as_helm_and_kustomize_render_them() {
    if packagers().is_none() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sources/renderer");
    // Go needs the user's own caches.
    Ran::of(Command::new("go").current_dir(folder).args(["test", "./tests", "-count=1"])).expect(0);
}
