//! Operands and options of `flatout copy` that make no sense together.

use std::path::PathBuf;

use flatout_io::quote;
use flatout_io::transfer::Method;
use flatout_report::Format;
use flatout_tree::copy::options::When;

use super::words::{first, method_name};
use super::{Copy, meant};
use crate::arguments::wrong::first_wrong;

/// Snapshots at most. Each is open all the time, and is searched for each file.
const MOST: usize = 8;

impl Copy {
    /// Says which operands or options make no sense together.
    pub fn contradiction(&self) -> Option<String> {
        self.wrong_operands()
            .or_else(|| self.wrong_method())
            .or_else(|| self.selection.contradiction())
            .or_else(|| self.wrong_snapshot())
            .or_else(|| self.as_cp.contradiction())
            .or_else(|| self.wrong_pair())
            .or_else(|| self.wrong_replacing())
            .or_else(|| self.wrong_delta())
    }

    fn wrong_operands(&self) -> Option<String> {
        let last = self.paths.last().map(quote);
        match (self.target_directory.as_slice(), self.paths.len()) {
            // Files would go where nobody looks for them.
            ([_, second, ..], _) => Some(format!("-t names a second directory: {}", quote(second))),
            ([], 1) => Some(format!("no target after {}", last?)),
            ([], count) if self.no_target_directory && count > 2 => {
                Some(format!("-T takes one source and one target, {} is one too many", last?))
            }
            _ => None,
        }
    }

    fn wrong_pair(&self) -> Option<String> {
        let lists = self.selection.files_from.is_some();
        let asks = self.rules().is_some_and(|rules| rules.asks);
        let meant = meant(self.output.as_deref()).filter(|_| self.format.is_none());
        let has_figures = self.figures().is_some() || self.log.is_some();
        let count = self.operands().0.len();
        let told = self.on_standard_output();
        first_wrong! {
            self.selection.reads_twice(asks) =>
                "standard input, or a pipe, is there once: of --files-from, --exclude-from and --interactive only one can read it";
            meant.is_some_and(|form| form != Format::Json) =>
                "figures are a table, or JSON in a FILE that ends in .json (--format)";
            self.mirror.is_idle() => "--max-delete means nothing without --delete";
            self.mirror.itemize && has_figures =>
                "--itemize contradicts --format, --output and --log: --log has the same and more";
            told.len() > 1 => format!("{} and {} would both be on standard output", told[0], told[1]);
            lists && self.mirror.deletion().is_some() =>
                "--files-from contradicts --delete: what is not listed would go";
            asks && self.mirror.dry_run =>
                "--interactive contradicts --dry-run: nothing is overwritten";
            self.delta && !self.in_place => "--delta means something only with --in-place";
            self.manifest.is_some() && self.mirror.dry_run =>
                "--dry-run makes nothing that a --manifest could list";
            lists && count != 1 => format!("--files-from takes one source, not {count}");
        }
    }

    /// What goes to standard output for programs.
    fn on_standard_output(&self) -> Vec<&'static str> {
        let goes_there =
            |file: &Option<PathBuf>| file.as_ref().is_some_and(|file| file.as_os_str() == "-");
        let all = [
            (self.format.is_some() && self.output.is_none(), "--format"),
            (goes_there(&self.output), "--output -"),
            (goes_there(&self.log), "--log -"),
            (goes_there(&self.manifest), "--manifest -"),
            (self.mirror.itemize, "--itemize"),
        ];
        all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, option)| option).collect()
    }

    fn wrong_replacing(&self) -> Option<String> {
        self.rules()?;
        let other = first(&[
            (self.atomic, "--atomic"),
            (self.resume == Some(When::Always), "--resume=always"),
            (self.checksum, "--checksum"),
            (self.quick_check, "--quick-check"),
            (!self.link_dest.is_empty(), "--link-dest"),
        ])?;
        Some(format!(
            "{other} contradicts -i -n -u -l -s -b -H -L: what is there is treated as by cp"
        ))
    }

    fn wrong_delta(&self) -> Option<String> {
        if !self.delta {
            return None;
        }
        let shares = self.engine == Some(Method::Reflink) || self.reflink == Some(When::Always);
        let other = first(&[
            (shares, "--reflink=always"),
            (matches!(self.sparse, Some(When::Always | When::Never)), "--sparse"),
            (self.rules().is_some(), "-i -n -u -l -s -b -H -L"),
        ])?;
        Some(format!("--delta contradicts {other}: it keeps what is there, and holes as they are"))
    }

    fn wrong_snapshot(&self) -> Option<String> {
        let Self { link_dest, reflink_dest, .. } = self;
        let (links, shares) = (!link_dest.is_empty(), !reflink_dest.is_empty());
        if !links && !shares {
            return None;
        }
        let option = if links { "--link-dest" } else { "--reflink-dest" };
        let sets_holes = matches!(self.sparse, Some(When::Always | When::Never));
        first_wrong! {
            self.always => format!("--always copies everything: {option} contradicts it");
            self.in_place && links =>
                "--in-place contradicts --link-dest: it would write into files of DIR";
            shares && self.reflink == Some(When::Never) =>
                "--reflink=never contradicts --reflink-dest";
            shares && sets_holes =>
                "--sparse contradicts --reflink-dest: shared extents keep their holes";
            link_dest.len() + reflink_dest.len() > MOST =>
                format!("{option}: {MOST} directories at most");
        }
    }

    fn wrong_method(&self) -> Option<String> {
        let engine = self.engine.map_or("auto", method_name);
        let shares = self.engine == Some(Method::Reflink);
        let always = self.reflink == Some(When::Always);
        let keeper = if shares { "--engine reflink" } else { "--reflink=always" };
        let sparse = match self.sparse {
            Some(When::Always) => "always",
            Some(When::Never) => "never",
            _ => "",
        };
        first_wrong! {
            shares && self.reflink == Some(When::Never) =>
                "--engine reflink contradicts --reflink=never";
            always && self.engine.is_some() && !shares =>
                format!("--engine {engine} contradicts --reflink=always");
            (shares || always) && !sparse.is_empty() =>
                format!("{keeper} keeps holes as they are: --sparse={sparse} contradicts it");
            self.depth.is_some() && !matches!(self.engine, None | Some(Method::Uring)) =>
                format!("--iodepth means nothing with --engine {engine}");
            self.block_size.is_some() && shares =>
                "--block-size means nothing with --engine reflink";
        }
    }
}
