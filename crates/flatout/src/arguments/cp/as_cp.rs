//! Letters of cp that change what becomes of an entry, for `flatout copy`. With any of them a copy goes
//! by the rules of cp(1): what is there is written in place, not replaced as a whole.

use clap::Arg;
use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::operand::Wording;
use flatout_tree::copy::options::Overwrite;
use flatout_tree::copy::rules::{Clearing, Follow, Form, Rules, Skip, Specials};

use super::Cp;
use super::defined::{Given, OPTIONS};
use crate::arguments::in_order::{InOrder, Said};

/// By their names in cp.
const NAMES: &str = "interactive no-clobber update -u link symbolic-link -H dereference no-dereference \
    backup -b suffix";

/// What they say.
pub type AsCp = InOrder<Given>;

impl Said for Given {
    fn options() -> Vec<Arg> {
        let options = OPTIONS.iter().filter(|option| NAMES.split(' ').any(|name| name == option.1));
        let argument = options.map(|option| {
            let argument = option.argument().hide(option.1 == "no-dereference");
            argument.help_heading("As cp (what is there is written in place then)")
        });
        argument.collect()
    }
}

impl AsCp {
    fn cp(&self) -> Cp {
        Cp::default().given(&self.0)
    }

    /// The rules, if any of these was given.
    pub fn rules(&self, overwrite: Overwrite) -> Option<Rules> {
        let cp = self.cp();
        let rules = Rules {
            follow: cp.follow.unwrap_or(Follow::Never),
            specials: Specials::Made,
            clearing: match overwrite {
                Overwrite::Protected => Clearing::Refused,
                Overwrite::Writable => Clearing::Nothing,
            },
            through_dangling: false,
            ..cp.rules()
        };
        let is_asked_for = rules.asks
            || cp.backup.is_some()
            || rules.follow != Follow::Never
            || rules.form != Form::Copy
            || rules.skip != Skip::Nothing;
        is_asked_for.then_some(rules)
    }

    /// What is overwritten is kept so.
    ///
    /// Errors: a word that means no kind of backup.
    pub fn backups(&self) -> Result<Option<Backups>, String> {
        self.cp().backups()
    }

    /// How operands are taken by these rules.
    pub fn wording(&self, rules: &Rules) -> Wording {
        Wording { rules: *rules, recursive: true, ..self.cp().wording() }
    }

    /// What makes no sense together.
    pub fn contradiction(&self) -> Option<String> {
        self.cp().wrong_rules()
    }
}
