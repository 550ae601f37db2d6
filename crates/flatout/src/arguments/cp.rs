//! `flatout cp`: the options of GNU cp, with its meanings. A table defines them (`cp/defined.rs`); what
//! was given is taken in the order given, as getopt_long(3) does it. The words that options take:
//! `cp/words.rs`.

pub mod as_cp;
pub(super) mod defined;
pub mod words;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
pub use defined::in_order;
use defined::{ABSENT, Defined, Given, OPTIONS};
use flatout_sys::cancel::CancelToken;
use flatout_tree::copy::backup::Backups;
use flatout_tree::copy::operand::{Destination, Wording, without_slashes};
use flatout_tree::copy::options::{Appearance, CopyOptions, Preserve, Reach, Unchanged, When};
use flatout_tree::copy::rules::{Clearing, Follow, Form, Rules, Skip, Specials};

use super::copy::Copy;
use super::in_order::said;
use super::wrong::first_wrong;
use crate::command::cp::complaint::quote;
use words::OF_CP;

const PATHS: &str = "paths";
const BARE: Preserve = Preserve::MODE.with(Preserve::OWNERSHIP).with(Preserve::TIMESTAMPS);

const USAGE: &str = "\
flatout cp [OPTIONS] [-T] SOURCE TARGET
       flatout cp [OPTIONS] SOURCE... DIR
       flatout cp [OPTIONS] -t DIR SOURCE...";

const AFTER: &str = include_str!("help/cp.txt").trim_ascii_end();

/// What is to be overwritten.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Overwriting {
    #[default]
    Everything,
    Asked,
    Nothing,
}

/// A command line of cp.
#[derive(Debug, Clone, Default)]
pub struct Cp {
    /// What to copy, and at last where to.
    paths: Vec<PathBuf>,
    /// Of `-t`: there is one at most.
    pub target_directories: Vec<PathBuf>,
    no_target_directory: bool,
    follow: Option<Follow>,
    is_recursive: bool,
    reads_specials: bool,
    preserve: Preserve,
    form: Vec<Form>,
    is_attributes_only: bool,
    overwriting: Overwriting,
    update: Skip,
    clearing: [bool; 2],
    backup: Option<OsString>,
    suffix: Option<OsString>,
    reflink: When,
    sparse: When,
    /// How far the copy goes.
    pub reach: Reach,
    /// Directories above sources are made in the target.
    pub parents: bool,
    /// What is done is said.
    pub verbose: bool,
    /// How it is done, too.
    debug: bool,
    into_symlinks: bool,
    requires_context: bool,
    strips_slashes: bool,
    /// What is wrong with a value.
    wrong: Option<String>,
    /// What is said before anything is done.
    pub warning: Option<&'static str>,
}

impl Cp {
    fn none(paths: Vec<PathBuf>) -> Self {
        Self { paths, preserve: Preserve::WHAT_IS_THERE, ..Self::default() }
    }

    /// Takes what was given of some options.
    fn given(mut self, given: &[Given]) -> Self {
        for (name, value) in given {
            if let Err(error) = self.take(name, value) {
                self.wrong = self.wrong.or(Some(error));
            }
        }
        self
    }

    /// Takes the next option of a command line.
    ///
    /// Errors: what is wrong with its value.
    fn take(&mut self, id: &str, value: &OsStr) -> Result<(), String> {
        let text = || value.to_string_lossy();
        let is_given = value != ABSENT;
        match id {
            "archive" => {
                (self.follow, self.is_recursive) = (Some(Follow::Never), true);
                self.keep(Preserve::ALL);
            }
            "attributes-only" => self.is_attributes_only = true,
            "backup" if is_given && !value.is_empty() => self.backup = Some(value.to_owned()),
            "backup" | "-b" => self.backup = self.backup.take().or(Some(OsString::new())),
            "copy-contents" => self.reads_specials = true,
            "debug" => (self.debug, self.verbose) = (true, true),
            "keep-directory-symlink" => self.into_symlinks = true,
            "-d" => {
                self.follow = Some(Follow::Never);
                self.keep(Preserve::LINKS);
            }
            "force" => self.clearing[0] = true,
            "interactive" => self.overwriting = Overwriting::Asked,
            "-H" => self.follow = Some(Follow::Named),
            "link" => self.form.push(Form::HardLink),
            "dereference" => self.follow = Some(Follow::Always),
            "no-clobber" => self.overwriting = Overwriting::Nothing,
            "no-dereference" => self.follow = Some(Follow::Never),
            "-p" => self.keep(BARE),
            "preserve" if !is_given => self.keep(BARE),
            "preserve" => {
                let list = words::attributes("--preserve", &text(), OF_CP)?;
                let names = |name: &str| text().split(',').any(|word| name.starts_with(word));
                self.requires_context |= names("context");
                self.keep(if names("xattr") { list.with(Preserve::DEMANDED) } else { list });
            }
            "no-preserve" => {
                let list = words::attributes("--no-preserve", &text(), OF_CP)?;
                self.preserve = self.preserve.without(list);
                if list.has(Preserve::MODE) {
                    self.preserve = self.preserve.with(Preserve::PLAIN_MODE);
                }
            }
            "parents" => self.parents = true,
            "recursive" => self.is_recursive = true,
            "reflink" if !is_given => self.reflink = When::Always,
            "reflink" => self.reflink = words::when("--reflink", &text())?,
            "remove-destination" => self.clearing[1] = true,
            "sparse" => self.sparse = words::when("--sparse", &text())?,
            "strip-trailing-slashes" => self.strips_slashes = true,
            "symbolic-link" => self.form.push(Form::Symlink),
            "suffix" => {
                self.backup = self.backup.take().or(Some(OsString::new()));
                self.suffix = Some(value.to_owned());
            }
            "target-directory" => self.target_directories.push(PathBuf::from(value)),
            "no-target-directory" => self.no_target_directory = true,
            "-u" => self.update = Skip::NotOlder,
            "update" if !is_given => self.update = Skip::NotOlder,
            "update" => self.update = words::update(&text())?,
            "verbose" => self.verbose = true,
            "one-file-system" => self.reach = Reach::OneFilesystem,
            "context" if is_given => {
                self.warning = Some("ignoring --context; it requires an SELinux-enabled kernel");
            }
            // -Z.
            _ => {}
        }
        Ok(())
    }

    /// Adds to what is kept.
    fn keep(&mut self, list: Preserve) {
        self.preserve = self.preserve.with(list);
        if list.has(Preserve::MODE) {
            self.preserve = self.preserve.without(Preserve::PLAIN_MODE);
        }
    }

    /// What makes no sense in what is to become of an entry.
    fn wrong_rules(&self) -> Option<String> {
        let keeps = self.overwriting == Overwriting::Nothing
            || matches!(self.update, Skip::Existing | Skip::ExistingFails);
        let has = |form| self.form.contains(&form);
        let together = first_wrong! {
            has(Form::HardLink) && has(Form::Symlink) => "cannot make both hard and symbolic links";
            self.backup.is_some() && keeps =>
                "options --backup and --no-clobber are mutually exclusive";
        };
        self.wrong.clone().or(together).or_else(|| self.backups().err())
    }

    /// What makes no sense in a command line.
    pub fn contradiction(&self) -> Option<String> {
        let has_directory = !self.target_directories.is_empty();
        let of_all = first_wrong! {
            self.target_directories.len() > 1 => "multiple target directories specified";
            self.reflink == When::Always && self.sparse != When::Auto =>
                "--reflink can be used only with --sparse=auto";
            self.requires_context =>
                "cannot preserve security context without an SELinux-enabled kernel";
            self.paths.is_empty() => "missing file operand";
            self.paths.len() == 1 && !has_directory =>
                format!("missing destination file operand after {}", quote(&self.paths[0]));
            self.no_target_directory && has_directory =>
                "cannot combine --target-directory (-t) and --no-target-directory (-T)";
            self.no_target_directory && self.paths.len() > 2 =>
                format!("extra operand {}", quote(&self.paths[2]));
            self.parents && !matches!(self.destination(), Destination::Into(_)) =>
                "with --parents, the destination must be a directory";
        };
        self.wrong_rules().or(of_all)
    }

    fn follow(&self) -> Follow {
        match self.follow {
            Some(follow) => follow,
            None if self.is_recursive && !self.form.contains(&Form::HardLink) => Follow::Never,
            None => Follow::Always,
        }
    }

    /// How operands are taken.
    pub fn wording(&self) -> Wording {
        Wording {
            rules: self.rules(),
            recursive: self.is_recursive,
            parents: self.parents,
            repeats: self.backups().is_ok_and(|backups| backups.is_some()),
        }
    }

    /// How holes are found, in the words of `--debug`; `None`: nobody asks, or nothing is read.
    pub fn hole_search(&self) -> Option<&'static str> {
        let words = match self.sparse {
            When::Never => "no",
            When::Auto => "SEEK_HOLE",
            When::Always => "SEEK_HOLE + zeros",
        };
        (self.debug && !self.is_attributes_only).then_some(words)
    }

    fn rules(&self) -> Rules {
        let makes_specials = self.is_recursive && !self.reads_specials;
        Rules {
            follow: self.follow(),
            form: self.form.first().copied().unwrap_or(Form::Copy),
            attributes_only: self.is_attributes_only,
            specials: if makes_specials { Specials::Made } else { Specials::Read },
            clearing: match self.clearing {
                [_, true] => Clearing::First,
                [true, false] => Clearing::Refused,
                [false, false] => Clearing::Nothing,
            },
            skip: match self.overwriting {
                Overwriting::Nothing => Skip::Existing,
                Overwriting::Everything | Overwriting::Asked => self.update,
            },
            asks: self.overwriting == Overwriting::Asked,
            into_symlinks: self.into_symlinks,
            through_dangling: std::env::var_os("POSIXLY_CORRECT").is_some(),
        }
    }

    /// What the copy is to be like.
    pub fn options(&self, cancel: CancelToken) -> CopyOptions {
        let rules = self.rules();
        CopyOptions {
            preserve: self.preserve,
            appearance: Appearance::AsFound(rules),
            unchanged: Unchanged::Never,
            reach: self.reach,
            reflink: self.reflink,
            sparse: self.sparse,
            // Questions are asked one after the other.
            threads: u32::from(rules.asks),
            ..Copy::default().options(cancel)
        }
    }

    /// The sources.
    pub fn sources(&self) -> Cow<'_, [PathBuf]> {
        let sources = match (self.target_directories.is_empty(), self.paths.split_last()) {
            (true, Some((_, sources))) => sources,
            _ => self.paths.as_slice(),
        };
        // As cp, which does it where there is a directory to copy into.
        let is_into = matches!(self.destination(), Destination::Into(_));
        match self.strips_slashes && is_into {
            true => sources.iter().map(|path| without_slashes(path).to_owned()).collect(),
            false => sources.into(),
        }
    }

    /// Where they go. A last operand that is a directory is that of all sources.
    pub fn destination(&self) -> Destination {
        match (self.target_directories.first(), self.paths.last()) {
            (Some(directory), _) => Destination::Into(directory.clone()),
            (None, Some(target)) if self.no_target_directory => {
                Destination::Exactly(target.clone())
            }
            (None, Some(target)) if target.is_dir() => Destination::Into(target.clone()),
            (None, target) => Destination::Named(target.cloned().unwrap_or_default()),
        }
    }

    /// What is overwritten is kept so.
    ///
    /// Errors: a word that means no kind of backup.
    pub fn backups(&self) -> Result<Option<Backups>, String> {
        words::backups(self.backup.as_deref(), self.suffix.as_ref())
    }

    /// `cp -fb FILE FILE` makes a backup of this file and no more.
    pub fn backed_up_itself(&self) -> Option<&Path> {
        let [source, target] = self.paths.as_slice() else { return None };
        let is_one = self.clearing[0] && self.target_directories.is_empty() && source == target;
        (is_one && target.is_file()).then_some(target)
    }

    /// Reads options of letters that take no value, and what is to be copied behind them; `None`:
    /// there is something else.
    pub(in crate::arguments) fn plain(words: &[OsString]) -> Option<Self> {
        let is_option = |word: &&OsString| word.as_bytes().first() == Some(&b'-');
        let (options, paths) = words.split_at(words.iter().take_while(is_option).count());
        if paths.len() < 2 || paths.iter().any(|word| is_option(&word)) {
            return None;
        }
        let mut cp = Self::none(paths.iter().map(PathBuf::from).collect());
        for word in options {
            let letters = word.to_str()?.strip_prefix('-')?;
            for letter in letters.chars() {
                cp.take(defined::plain(letter)?, OsStr::new("")).ok()?;
            }
            letters.chars().next()?;
        }
        Some(cp)
    }
}

impl FromArgMatches for Cp {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let paths = matches.get_many::<PathBuf>(PATHS).into_iter().flatten().cloned().collect();
        Ok(Self::none(paths).given(&said(matches, OPTIONS.iter().map(|option| option.1))))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Cp {
    fn augment_args(command: Command) -> Command {
        let paths = Arg::new(PATHS).value_name("SOURCE").num_args(0..).action(ArgAction::Append);
        let paths = paths.value_parser(OsStringValueParser::new().map(PathBuf::from));
        // -h is no option of cp.
        let help = Arg::new("help").long("help").action(ArgAction::Help).help("Print help");
        let version = Arg::new("version").long("version").action(ArgAction::Version);
        let command = command
            .disable_help_flag(true)
            .disable_version_flag(true)
            .infer_long_args(true)
            .version(env!("CARGO_PKG_VERSION"))
            .override_usage(USAGE)
            .after_help(AFTER);
        let command = command.args(OPTIONS.iter().map(Defined::argument));
        command
            .arg(help)
            .arg(version.help("Print version"))
            .arg(paths.help("What to copy, and at last where to"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
