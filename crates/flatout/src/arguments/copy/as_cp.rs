//! Letters of cp that change what becomes of an entry. With any of them a copy goes by the rules of
//! cp(1): what is there is written in place, not replaced as a whole.

use std::ffi::OsString;

use clap::Args;
use clap::builder::OsStringValueParser;
use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::operand::Wording;
use flatout_tree::copy::options::Overwrite;
use flatout_tree::copy::rules::{Clearing, Follow, Form, Rules, Skip, Specials};

use super::super::cp::words;

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "As cp (what is there is written in place then)")]
pub struct AsCp {
    /// Ask before overwriting
    #[arg(short, long, overrides_with = "no_clobber")]
    interactive: bool,
    /// Leave what is there
    #[arg(short, long, overrides_with = "interactive")]
    no_clobber: bool,
    /// Replace only what is older; the same as --update=older
    #[arg(short = 'u', overrides_with = "update")]
    is_update: bool,
    /// Leave what is there: all (replace), none, none-fail, older (replace what is); without a value:
    /// older
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "older", value_parser = words::update, overrides_with = "is_update")]
    update: Option<Skip>,
    /// Make hard links instead of copies
    #[arg(short, long)]
    link: bool,
    /// Make symlinks instead of copies
    #[arg(short, long, conflicts_with = "link")]
    symbolic_link: bool,
    /// Follow symlinks that are named as SOURCE
    #[arg(short = 'H', overrides_with_all = ["dereference", "no_dereference"])]
    named: bool,
    /// Follow all symlinks of SOURCE
    #[arg(short = 'L', long, overrides_with_all = ["named", "no_dereference"])]
    dereference: bool,
    /// Follow no symlinks, as without it
    #[arg(short = 'P', long, hide = true, overrides_with_all = ["named", "dereference"])]
    no_dereference: bool,
    /// Keep what is overwritten; like --backup, without a value
    #[arg(short = 'b')]
    is_backup: bool,
    /// Keep what is overwritten under another name: none, simple, existing, numbered
    #[arg(long, value_name = "CONTROL", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = OsStringValueParser::new())]
    backup: Option<OsString>,
    /// What follows the name of a backup [default: ~]
    #[arg(short = 'S', long, value_name = "SUFFIX", value_parser = OsStringValueParser::new())]
    suffix: Option<OsString>,
}

impl AsCp {
    /// The rules, if any of these was given.
    pub fn rules(&self, overwrite: Overwrite) -> Option<Rules> {
        let follow = match (self.dereference, self.named) {
            (true, _) => Follow::Always,
            (_, true) => Follow::Named,
            _ => Follow::Never,
        };
        let form = match (self.link, self.symbolic_link) {
            (true, _) => Form::HardLink,
            (_, true) => Form::Symlink,
            _ => Form::Copy,
        };
        let skip = match (self.no_clobber, self.is_update) {
            (true, _) => Skip::Existing,
            (_, true) => Skip::NotOlder,
            _ => self.update.unwrap_or(Skip::Nothing),
        };
        let is_asked_for = self.interactive
            || self.has_backups()
            || follow != Follow::Never
            || form != Form::Copy
            || skip != Skip::Nothing;
        is_asked_for.then_some(Rules {
            follow,
            form,
            attributes_only: false,
            specials: Specials::Made,
            clearing: match overwrite {
                Overwrite::Protected => Clearing::Refused,
                Overwrite::Writable => Clearing::Nothing,
            },
            skip,
            asks: self.interactive,
            into_symlinks: false,
            through_dangling: false,
        })
    }

    fn has_backups(&self) -> bool {
        self.is_backup || self.backup.is_some() || self.suffix.is_some()
    }

    /// What is overwritten is kept so.
    ///
    /// Errors: a word that means no kind of backup.
    pub fn backups(&self) -> Result<Option<Backups>, String> {
        let control = self.backup.clone().or(self.has_backups().then(OsString::new));
        words::backups(control.as_deref(), self.suffix.as_ref())
    }

    /// How operands are taken by these rules.
    pub fn wording(&self, rules: &Rules) -> Wording {
        Wording {
            follow: rules.follow,
            recursive: true,
            parents: false,
            into_symlinks: false,
            repeats: self.has_backups(),
            spares_itself: rules.spares_itself(),
        }
    }

    /// What makes no sense together.
    pub fn contradiction(&self) -> Option<String> {
        let keeps =
            self.no_clobber || matches!(self.update, Some(Skip::Existing | Skip::ExistingFails));
        if keeps && self.has_backups() {
            return Some("--backup keeps what is overwritten, and nothing is to be".to_owned());
        }
        self.backups().err()
    }
}
