//! Operands and options of `flatout copy` that make no sense together.

use flatout_io::quote;
use flatout_io::transfer::Method;
use flatout_tree::copy::options::When;

use super::Copy;
use super::words::method_name;

impl Copy {
    /// Says which operands or options make no sense together.
    pub fn contradiction(&self) -> Option<String> {
        self.wrong_operands()
            .or_else(|| self.wrong_method())
            .or_else(|| self.mirror.contradiction())
            .or_else(|| self.wrong_output())
            .or_else(|| self.selection.contradiction())
            .or_else(|| self.wrong_list())
            .or_else(|| self.wrong_snapshot())
            .or_else(|| self.as_cp.contradiction())
            .or_else(|| self.wrong_replacing())
            .or_else(|| self.wrong_delta())
            .or_else(|| self.wrong_manifest())
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

    fn wrong_output(&self) -> Option<String> {
        let is_mixed = self.mirror.itemize && (self.figures().is_some() || self.log.is_some());
        is_mixed.then(|| {
            "--itemize contradicts --format, --output and --log: --log has the same and more"
                .to_owned()
        })
    }

    fn wrong_list(&self) -> Option<String> {
        self.selection.files_from.as_ref()?;
        if self.mirror.deletion().is_some() {
            return Some(
                "--files-from contradicts --delete: what is not listed would go".to_owned(),
            );
        }
        let (sources, _) = self.operands();
        let count = sources.len();
        (count != 1).then(|| format!("--files-from takes one source, not {count}"))
    }

    fn wrong_replacing(&self) -> Option<String> {
        if self.rules()?.asks && self.mirror.dry_run {
            return Some("--interactive contradicts --dry-run: nothing is overwritten".to_owned());
        }
        let other = [
            (self.atomic, "--atomic"),
            (self.checksum, "--checksum"),
            (self.quick_check, "--quick-check"),
            (!self.snapshot.link_dest.is_empty(), "--link-dest"),
        ];
        let (_, other) = other.into_iter().find(|(is_given, _)| *is_given)?;
        Some(format!(
            "{other} contradicts -i -n -u -l -s -b -H -L: what is there is treated as by cp"
        ))
    }

    fn wrong_manifest(&self) -> Option<String> {
        let is_given = self.manifest.is_some() && self.mirror.dry_run;
        is_given.then(|| "--dry-run makes nothing that a --manifest could list".to_owned())
    }

    fn wrong_delta(&self) -> Option<String> {
        if !self.delta {
            return None;
        }
        if !self.in_place {
            return Some("--delta means something only with --in-place".to_owned());
        }
        let shares = self.engine == Some(Method::Reflink) || self.reflink == Some(When::Always);
        let other = [
            (shares, "--reflink=always"),
            (matches!(self.sparse, Some(When::Always | When::Never)), "--sparse"),
            (self.rules().is_some(), "-i -n -u -l -s -b -H -L"),
        ];
        let (_, other) = other.into_iter().find(|(is_given, _)| *is_given)?;
        Some(format!("--delta contradicts {other}: it keeps what is there, and holes as they are"))
    }

    fn wrong_method(&self) -> Option<String> {
        let engine = self.engine.map_or("auto", method_name);
        let shares = self.engine == Some(Method::Reflink);
        let sparse = match self.sparse {
            Some(When::Always) => Some("always"),
            Some(When::Never) => Some("never"),
            _ => None,
        };
        match (self.engine, self.reflink) {
            (Some(Method::Reflink), Some(When::Never)) => {
                return Some("--engine reflink contradicts --reflink=never".to_owned());
            }
            (None | Some(Method::Reflink), _) => {}
            (_, Some(When::Always)) => {
                return Some(format!("--engine {engine} contradicts --reflink=always"));
            }
            _ => {}
        }
        if let Some(sparse) = sparse {
            if shares {
                return Some(format!(
                    "--engine reflink keeps holes as they are: --sparse={sparse} contradicts it"
                ));
            }
            if self.reflink == Some(When::Always) {
                return Some(format!(
                    "--reflink=always keeps holes as they are: --sparse={sparse} contradicts it"
                ));
            }
        }
        if self.depth.is_some() && !matches!(self.engine, None | Some(Method::Uring)) {
            return Some(format!("--iodepth means nothing with --engine {engine}"));
        }
        if self.block_size.is_some() && shares {
            return Some("--block-size means nothing with --engine reflink".to_owned());
        }
        None
    }
}
