//! The flags that say which state a command goes on from.

use crate::reading::Search;

#[derive(Clone, Debug, Default, clap::Args)]
pub struct StateArgs {
    /// Go on from this rendered branch, in place of this repository's own or, where it has none, its remote's
    #[arg(long, value_name = "REF", env = "BERTH_RENDERED")]
    pub rendered: Option<String>,
    /// Go on from nothing where no state is found: nothing was ever published
    #[arg(long)]
    pub first: bool,
}

impl StateArgs {
    pub fn search(&self) -> Search {
        Search { rendered: self.rendered.clone(), first: self.first }
    }
}
