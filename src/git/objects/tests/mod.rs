//! Tests of the Git layer against real repositories.

mod objects;
mod reading;
mod refs;

use crate::testing::{assert_clean, bare, commit_files};
use crate::{CommitId, Identity, Repo, Writer};
use tempfile::TempDir;
