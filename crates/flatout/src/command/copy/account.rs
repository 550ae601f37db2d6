//! What a copy came to: its figures, its last line, its exit code.

use std::os::unix::ffi::OsStrExt;

use flatout_io::transfer::Method;
use flatout_report::quantity;
use flatout_sys::memory;
use flatout_tree::copy::backup::Naming;
use flatout_tree::copy::operand::{Destination, Plan};
use flatout_tree::copy::rules::Skip;
use flatout_tree::copy::{Ended, Snapshot};

use super::limit::{Limits, Moved, Share};
use super::resume;
use crate::arguments::copy::{Copy as Arguments, method_name};
use crate::conclusion::{DONE, FAILED, INTERRUPTED, rate};

/// Figures of a copy that has ended.
#[derive(Debug, Clone, Default)]
pub struct Account {
    /// What was done.
    pub totals: Snapshot,
    /// Operands that were not even tried.
    pub objections: u64,
    /// Things of the target may be deleted.
    pub deletes: bool,
    /// Nothing was done: it is what would be.
    pub is_plan: bool,
    /// Each file copied was read back and had the digest of what was read.
    pub is_verified: bool,
    /// From the first look at an operand to the last system call.
    pub elapsed_ns: u64,
    /// Bytes of those moved that storage may not have yet, at most. `None`: unknown, or there is no
    /// storage.
    pub unwritten_bytes: Option<u64>,
    /// The same command would put another copy into the target that this one made.
    pub goes_into_itself: bool,
    /// The user wanted to stop.
    pub is_interrupted: bool,
    /// It ended because there was no room.
    pub is_out_of_space: bool,
    /// How close it came to what was measured here.
    pub share: Option<Share>,
}

/// How to go on with a copy that ended early: by the same command, or nearly.
fn way_on(arguments: &Arguments, goes_into_itself: bool) -> String {
    let same = if goes_into_itself { "same command, with -T," } else { "same command" };
    if arguments.always {
        return format!("without --always the {same} goes on with what is not complete");
    }
    let again = format!("give the {same} again");
    let skip = arguments.rules().map(|rules| rules.skip);
    // What was copied would take the place of the backups of what was there before.
    if skip == Some(Skip::Nothing)
        && arguments.backups().is_some_and(|backups| backups.naming != Naming::Numbered)
    {
        return format!("with --backup=numbered the {same} goes on and loses no backup");
    }
    if arguments.checksum || arguments.quick_check {
        return format!("{again} to go on");
    }
    match skip {
        Some(Skip::Nothing) => format!("{again}: it copies everything anew"),
        Some(_) => format!("{again} to go on: what is complete stays"),
        None if resume::place(arguments).is_some() => {
            format!("{again} to go on: what was noted as finished is not copied again")
        }
        None => format!("{again}: it copies everything anew"),
    }
}

/// Whether the one target that is named becomes a directory by this very copy, so that the same command
/// would put another one into it.
pub fn goes_into_itself(arguments: &Arguments, plan: &Plan) -> bool {
    let (sources, destination) = arguments.operands();
    let ([source], Destination::Named(target)) = (sources, destination) else { return false };
    // What is in a directory goes into the target itself, then as now.
    let text = source.as_os_str().as_bytes();
    let is_within = matches!(text, b"." | b"..") || text.ends_with(b"/.") || text.ends_with(b"/..");
    let is_directory = source.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let mut targets = plan.rounds.iter().flatten().map(|operand| &operand.target);
    is_directory && !is_within && targets.any(|goes_to| *goes_to == target)
}

/// Bytes that storage may not have yet, of those that a copy has handed over: at most so many, for the
/// kernel counts those of all programs together.
pub fn unwritten_bytes(accepted_bytes: u64) -> Option<u64> {
    memory::unwritten_bytes().map(|bytes| bytes.min(accepted_bytes))
}

/// Files whose bytes were moved, not shared, and their bytes.
fn moved(totals: &Snapshot) -> (u64, u64) {
    let moving = totals.by_method.iter().filter(|moved| moved.0 != Method::Reflink);
    moving.fold((0, 0), |sum, moved| (sum.0 + moved.1, sum.1 + moved.2))
}

/// Those of these counts that are not zero, each with its words.
fn listed(counts: &[(u64, &str)]) -> String {
    let some = counts.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, words)| format!("; {} {words}", quantity::count(*count))).collect()
}

impl Account {
    /// Sums up what has ended.
    pub fn new(ended: &Ended, objections: u64, elapsed_ns: u64) -> Self {
        Self {
            totals: ended.totals,
            objections,
            elapsed_ns,
            is_interrupted: ended.interrupted,
            is_out_of_space: ended.out_of_space,
            ..Self::default()
        }
    }

    /// Finds out what storage may not have yet.
    pub fn look_what_is_unwritten(&mut self) {
        self.unwritten_bytes = unwritten_bytes(moved(&self.totals).1);
    }

    /// Finds out how close it came to the limits, where so many bytes came from devices meanwhile
    /// and everything was read back so often.
    pub fn hold_against(&mut self, limits: &Limits, fetched_bytes: u64, times_read_back: u64) {
        let (files, bytes) = moved(&self.totals);
        let read_back_bytes = bytes * times_read_back;
        self.share = limits.share(&Moved {
            files,
            bytes,
            fetched_bytes: fetched_bytes.saturating_sub(read_back_bytes),
            written_bytes: self.unwritten_bytes.map(|unwritten| bytes.saturating_sub(unwritten)),
            read_back_bytes,
            elapsed_ns: self.elapsed_ns,
        });
    }

    /// Storage has it all, unless something went wrong: what the machine has not written yet is
    /// that of others.
    pub fn all_is_written(&mut self) {
        if self.failed() == 0 && !self.is_interrupted && !self.is_out_of_space {
            self.unwritten_bytes = Some(0);
        }
    }

    /// That it ended early, and how to go on.
    pub fn hint(&self, arguments: &Arguments) -> Option<String> {
        let why = match (self.is_out_of_space, self.is_interrupted) {
            (true, _) => {
                "stopped: there is no room left on a filesystem of the target; make some and"
            }
            (_, true) => "interrupted;",
            _ => return None,
        };
        Some(format!("{why} {}", way_on(arguments, self.goes_into_itself)))
    }

    /// How the program ends.
    pub fn exit_code(&self) -> i32 {
        if self.is_interrupted {
            INTERRUPTED
        } else if self.failed() > 0
            || self.totals.incomplete > 0
            || self.totals.spared > 0
            || self.is_out_of_space
        {
            FAILED
        } else {
            DONE
        }
    }

    /// What was not copied.
    pub fn failed(&self) -> u64 {
        self.totals.failed + self.objections
    }

    /// That not all was deleted, and why.
    pub fn spared_text(&self) -> Option<String> {
        let spared = Some(self.totals.spared).filter(|&spared| spared > 0)?;
        let were = if spared == 1 { "was" } else { "were" };
        Some(format!("{spared} {were} to be deleted and {were} not: --max-delete"))
    }

    /// Bytes in the files copied, or that would be.
    pub fn bytes(&self) -> u64 {
        match self.is_plan {
            true => self.totals.bytes_accepted,
            false => self.totals.bytes_copied(),
        }
    }

    /// Bytes per second that lie in files copied; `None` where there are none.
    pub fn rate(&self) -> Option<f64> {
        rate(self.totals.bytes_copied(), self.elapsed_ns)
    }

    /// The methods that moved something, with their files and bytes.
    pub fn methods(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let used = self.totals.by_method.iter().filter(|(_, files, bytes)| files + bytes > 0);
        used.map(|(method, files, bytes)| (method_name(*method), *files, *bytes))
    }

    /// What would be done, in one line.
    fn plan_line(&self, copied: &str) -> String {
        let totals = &self.totals;
        let counts = [
            (totals.directories, if totals.directories == 1 { "directory" } else { "directories" }),
            (totals.others, if totals.others == 1 { "other" } else { "others" }),
            (totals.overwritten, "to be overwritten"),
            (totals.linked, "to be linked"),
            (totals.unchanged, "unchanged"),
            (totals.deleted, "to be deleted"),
            (totals.spared, "not to be deleted"),
            (self.failed(), "failed"),
        ];
        format!("dry run: {copied} to be copied{}", listed(&counts))
    }

    /// Everything in one line.
    pub fn closing_line(&self) -> String {
        let totals = &self.totals;
        let files = quantity::counted(totals.files as usize, "file");
        let bytes = quantity::rounded_size(self.bytes());
        if self.is_plan {
            return self.plan_line(&format!("{files}, {bytes}"));
        }
        let seconds = quantity::number(self.elapsed_ns as f64 / 1e9);
        let mut line = format!("{files}, {bytes} in {seconds} s");
        if let Some(rate) = self.rate() {
            line.push_str(&format!(": {}", quantity::value("bytes/s", rate)));
        }
        let methods: Vec<String> = self
            .methods()
            .map(|(name, files, _)| format!("{name} {}", quantity::count(files)))
            .collect();
        if !methods.is_empty() {
            line.push_str(&format!(" (engine {})", methods.join(", ")));
        }
        let counts = [
            (totals.linked, "linked"),
            (totals.unchanged, "unchanged"),
            (self.failed(), "failed"),
            (totals.incomplete, "incomplete"),
            (totals.retried, "retried"),
            (totals.deleted, "deleted"),
            (totals.spared, "not deleted"),
        ];
        line.push_str(&listed(&counts));
        if self.is_verified {
            line.push_str("; verified");
        }
        if let Some(unwritten) = self.unwritten_bytes.filter(|bytes| *bytes > 0) {
            line.push_str(&format!(
                "; at most {} not on disk yet",
                quantity::rounded_size(unwritten)
            ));
        }
        if let Some(share) = &self.share {
            line.push_str(&format!("; {}", share.text()));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        let totals = Snapshot {
            files: 20_000,
            directories: 3,
            bytes_accepted: 3 << 30,
            by_method: [
                (Method::Reflink, 0, 0),
                (Method::CopyFileRange, 0, 0),
                (Method::Splice, 0, 0),
                (Method::Sync, 19_998, 1 << 30),
                (Method::Mmap, 0, 0),
                (Method::Uring, 2, 2 << 30),
            ],
            ..Snapshot::default()
        };
        Account { totals, elapsed_ns: 2_000_000_000, ..Account::default() }
    }

    #[test]
    fn the_last_line_says_what_was_done_and_how() {
        let mut account = account();
        let line = "20,000 files, 3 GiB in 2.00 s: 1,536 MiB/s (engine sync 19,998, uring 2)";
        assert_eq!(account.closing_line(), line);
        assert_eq!(account.exit_code(), DONE);
        account.is_verified = true;
        assert_eq!(account.closing_line(), format!("{line}; verified"));
        account.is_verified = false;
        account.totals.unchanged = 7;
        account.totals.failed = 1;
        account.objections = 1;
        account.unwritten_bytes = Some(1 << 20);
        let more = format!("{line}; 7 unchanged; 2 failed; at most 1 MiB not on disk yet");
        assert_eq!(account.closing_line(), more);
        account.share = Some(Share {
            ratio: Some(0.874),
            limit_s: 1.75,
            limiter: "making files",
            measured: "2026-11-22T12:00:00Z".to_owned(),
            left_out: Vec::new(),
        });
        let end = "; 87 % of the limit measured on 2026-11-22 (making files)";
        assert_eq!(account.closing_line(), more + end);
        assert_eq!(account.exit_code(), FAILED);
        (account.totals.failed, account.objections, account.totals.incomplete) = (0, 0, 3);
        assert!(account.closing_line().contains("; 3 incomplete; at most 1 MiB not on"));
        assert_eq!(account.exit_code(), FAILED);
        account.is_interrupted = true;
        assert_eq!(account.exit_code(), INTERRUPTED);
    }

    #[test]
    fn one_of_a_kind_is_planned_in_the_singular() {
        let totals = Snapshot { directories: 1, others: 1, ..Snapshot::default() };
        let mut account = Account { totals, is_plan: true, ..account() };
        assert!(account.closing_line().ends_with("; 1 directory; 1 other"));
        (account.totals.directories, account.totals.others) = (2, 2);
        assert!(account.closing_line().ends_with("; 2 directories; 2 others"));
        account.totals.spared = 1;
        let spared = account.spared_text().unwrap();
        assert!(spared.starts_with("1 was to be deleted and was not"), "{spared}");
    }

    #[test]
    fn nothing_done_has_no_rate() {
        let mut account = account();
        account.totals.by_method = Snapshot::default().by_method;
        assert_eq!(account.rate(), None);
        account.totals.files = 1;
        assert!(account.closing_line().starts_with("1 file, 0 B in 2.00 s"));
    }
}
