//! What becomes of things in the target that the source does not have.

use clap::Args;
use flatout_tree::copy::options::{Deletion, Effect};

const HEADING: &str = "Mirror";

#[derive(Debug, Clone, Default, Args)]
pub struct Mirror {
    /// Delete what the sources do not have; from the directories that are copied into, and not once a
    /// source cannot be read. Things of another kind take the place of what is there
    #[arg(long, help_heading = HEADING)]
    delete: bool,
    /// The same, and delete what is excluded, too
    #[arg(long, help_heading = HEADING)]
    delete_excluded: bool,
    /// Delete no more than N things; more would be a failure (exit code 1)
    #[arg(long, value_name = "N", help_heading = HEADING)]
    max_delete: Option<u64>,
    /// Do nothing, and say what would be done: how much is copied, overwritten and deleted; with
    /// --verbose a line for each
    #[arg(long, help_heading = HEADING)]
    pub dry_run: bool,
    /// Print a line for each thing that is changed or deleted, in the letters of rsync -i, which say
    /// what changes; below TARGET
    #[arg(long, alias = "itemize-changes", help_heading = HEADING)]
    pub itemize: bool,
}

impl Mirror {
    /// What goes.
    pub fn deletion(&self) -> Option<Deletion> {
        let Self { delete, delete_excluded: takes_excluded, max_delete: most, .. } = *self;
        (delete || takes_excluded).then_some(Deletion { most, takes_excluded })
    }

    /// Whether it is done.
    pub fn effect(&self) -> Effect {
        if self.dry_run { Effect::Planned } else { Effect::Done }
    }

    /// Whether nothing goes, of which there is a limit.
    pub fn is_idle(&self) -> bool {
        self.max_delete.is_some() && self.deletion().is_none()
    }
}
