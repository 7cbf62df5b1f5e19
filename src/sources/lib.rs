//! Charts and bases → their rendered documents, by the renderer: a small program over Helm's and Kustomize's own
//! libraries, in the folder `renderer`.
//!
//! - [`program`]: finds the program. `process`: one running process, and the frames that it exchanges with berth.
//! - [`protocol`]: requests and answers. [`client`]: renders each input once, and starts the process again when it
//!   ended.

pub mod client;
mod process;
pub mod program;
pub mod protocol;

pub use client::{Failure, Renderer, Request, Tree, TreeFile};
pub use process::Limits;
pub use program::Program;
pub use protocol::{
    Answer, Document, HelmAnswer, HelmRequest, Hook, KustomizeAnswer, SourceFault, ValueOrigin, Values,
};
