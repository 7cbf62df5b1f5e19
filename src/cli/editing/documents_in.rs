//! Reads the objects in the files, in folders and on standard input that a command line names.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::output::ui::Ui;
use crate::process::exit::CommandError;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::edit::objects;
use berth_base::source;
use berth_base::yaml::Limits;
use berth_engine::dialects::kubefed::make::Subject;
use berth_hub::inputs::InputError;

/// The documents of the named files.
#[derive(Debug, Default)]
pub(crate) struct DocumentsIn {
    pub subjects: Vec<Subject>,
    /// The number of documents that are not objects.
    pub passed_over: usize,
    pub found: Diagnostics,
}

/// Reads files, all YAML files in folders, and `-` for standard input.
pub fn read(paths: &[PathBuf], ui: &Ui) -> Result<DocumentsIn, CommandError> {
    let limits = Limits::default();
    let mut read = DocumentsIn::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let bytes = ui.input(most(&limits)).map_err(|error| cannot_read(path, &error))?;
            take(&mut read, "standard input".into(), &bytes);
        } else if path.is_dir() {
            let tree = source::read_dir(path, &limits).map_err(InputError::from)?;
            read.found.extend(tree.found);
            for file in tree.files.values() {
                take(&mut read, path.join(&*file.path).display().to_string().into(), &file.bytes);
            }
        } else {
            let file = std::fs::File::open(path).map_err(|error| cannot_read(path, &error))?;
            take(&mut read, path.display().to_string().into(), &limited(file, path, &limits)?);
        }
    }
    Ok(read)
}

/// Returns the reader's limit plus one byte, so that the reader refuses longer input.
fn most(limits: &Limits) -> u64 {
    u64::try_from(limits.bytes).unwrap_or(u64::MAX).saturating_add(1)
}

fn limited(from: impl std::io::Read, path: &Path, limits: &Limits) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    from.take(most(limits)).read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    Ok(bytes)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::io(format!("reading {}", path.display()), error)
}

fn take(read: &mut DocumentsIn, file: Arc<str>, bytes: &[u8]) {
    let here = objects(bytes);
    for fault in here.faults {
        let at = Pos::new(file.clone(), fault.at.line, fault.at.column);
        read.found.push(Diagnostic::new(fault.severity, at, fault.message).maybe_hint(fault.hint));
    }
    read.passed_over += here.passed_over;
    read.subjects.extend(here.found.into_iter().map(|found| Subject {
        at: Pos::new(file.clone(), found.at.line, found.at.column),
        object: found.node.to_json(),
    }));
}
