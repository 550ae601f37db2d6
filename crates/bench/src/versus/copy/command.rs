//! How each copier is called for a tree, and what it promises to keep.
//!
//! What a rival promises and breaks fails its row; what it never promised is noted. The promises
//! are those of the manuals and of `--help`, of the versions at hand in November 2026.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use flatout_tree::compare::{Fidelity, Kind};

use crate::versus::State;
use crate::versus::race::Argv;
use crate::versus::run::{operand, quoted};

flatout_sys::words! {
    /// What a copier keeps, as far as ratios between copiers need it.
    pub enum Class: name {
        /// Files and directories with their bytes.
        Contents = "contents",
        /// Besides, symlinks as symlinks.
        ContentsAndSymlinks = "contents+symlinks",
        /// Besides, owner, modes and times.
        Archive = "archive",
    }
}

/// What is known of a copier.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// The rival's name.
    pub name: &'static str,
    /// What it keeps.
    pub class: Class,
    /// What it is held to.
    pub promise: Fidelity,
    /// What it is told before source and target.
    options: &'static [&'static str],
    /// The same where the target is a copy already; `None`: it would copy everything again.
    again: Option<&'static [&'static str]>,
    style: Style,
}

/// How source and target are named.
#[derive(Debug, Clone, Copy)]
enum Style {
    /// As they are.
    Plain,
    /// As rsync has it: a slash after the source means what is in it.
    Slashed,
    /// The source with a dot behind it: without, the tree comes to lie below the target.
    Dotted,
    /// Two tars and a pipe.
    Pipe,
    /// As dd has them: of files alone.
    Operands,
}

/// Beyond symlinks: all that stat(2) tells, whole.
const ARCHIVE: Fidelity = Fidelity::ALL.without(Kind::Attribute).without(Kind::Hole);
const RSYNC_A: Fidelity = ARCHIVE.without(Kind::HardLink).without(Kind::TimeFraction);
const LINKS: Fidelity = Fidelity::CONTENTS_AND_SYMLINKS;
const OF_FILES: Fidelity = LINKS.with(Kind::Mode).with(Kind::FileTime);

/// The rivals that flatout can call.
const MANNERS: [Manner; 13] = [
    Manner {
        again: Some(&["-a", "-u", "-T"]),
        ..plain("cp-a", Class::Archive, Fidelity::ALL, &["-a"])
    },
    plain("cp-r", Class::ContentsAndSymlinks, LINKS.with(Kind::Hole), &["-r"]),
    // -H, -A, -X and -S are not in -a, and times that agree to the second count as equal unless
    // --modify-window=-1: a directory may keep another fraction.
    Manner {
        style: Style::Slashed,
        again: Some(&["-a"]),
        ..plain("rsync-a", Class::Archive, RSYNC_A, &["-a"])
    },
    Manner {
        style: Style::Slashed,
        ..plain(
            "rsync-r",
            Class::Contents,
            Fidelity::CONTENTS,
            &["-r", "--inplace", "-W", "--no-compress"],
        )
    },
    // The default format, gnu, has whole seconds.
    Manner {
        style: Style::Pipe,
        ..plain("tar", Class::Archive, ARCHIVE.without(Kind::TimeFraction), &[])
    },
    // Permissions and times of files, not of directories.
    plain("xcp", Class::ContentsAndSymlinks, OF_FILES, &["-r", "--no-progress", "-T"]),
    plain("cpz", Class::ContentsAndSymlinks, LINKS, &[]),
    plain("fcp", Class::ContentsAndSymlinks, LINKS, &[]),
    // cpx 0.2.1 and pxs 0.7.0 as they were seen to work, 2026-11-25.
    Manner {
        style: Style::Dotted,
        ..plain("cpx", Class::ContentsAndSymlinks, LINKS, &["-r", "--no-config"])
    },
    plain("pxs", Class::ContentsAndSymlinks, OF_FILES, &["-q", "sync"]),
    plain("rcp", Class::ContentsAndSymlinks, LINKS.with(Kind::Mode), &[]),
    // Without a configuration file, so that nobody's own settings race.
    plain(
        "rclone",
        Class::ContentsAndSymlinks,
        LINKS.with(Kind::FileTime),
        &["copy", "--config", "", "--links", "--create-empty-src-dirs"],
    ),
    Manner {
        style: Style::Operands,
        ..plain("dd-1m", Class::Contents, Fidelity::CONTENTS, &["bs=1M"])
    },
];

const fn plain(
    name: &'static str,
    class: Class,
    promise: Fidelity,
    options: &'static [&'static str],
) -> Manner {
    Manner { name, class, promise, options, again: None, style: Style::Plain }
}

impl Manner {
    /// Ourselves, held to all that a tree has.
    pub const FLATOUT: Self = Self {
        again: Some(&["copy", "-T", "--resume=never", "--quick-check"]),
        ..plain("flatout", Class::Archive, Fidelity::ALL, &["copy", "-T", "--resume=never"])
    };
    /// Ourselves, without attributes.
    pub const FLATOUT_BARE: Self = plain(
        "flatout",
        Class::ContentsAndSymlinks,
        LINKS.with(Kind::Hole),
        &["copy", "-T", "--resume=never", "--no-preserve=all"],
    );

    /// What is known of the rival of this name.
    pub fn of(name: &str) -> Option<Self> {
        MANNERS.into_iter().find(|manner| manner.name == name)
    }

    /// How it is called where a race begins so; `None`: it takes no part.
    pub fn in_state(self, state: State) -> Option<Self> {
        let options = if state == State::Unchanged { self.again? } else { self.options };
        Some(Self { options, ..self })
    }

    /// What it can be held to here: without privilege, owners and what belongs to them are best
    /// effort for everybody.
    pub fn promise_as(&self, is_privileged: bool) -> Fidelity {
        if is_privileged {
            return self.promise;
        }
        [Kind::Owner, Kind::SpecialBits, Kind::Device, Kind::MissingSpecial, Kind::Attribute]
            .into_iter()
            .fold(self.promise, Fidelity::without)
    }

    /// From which length on its copies share extents, where those of flatout do from `bytes` on; `None`: bytes go
    /// through it, and none are shared. (So they do through cp before coreutils 9.)
    pub fn shared_from(&self, bytes: u64) -> Option<u64> {
        let moves_bytes = matches!(self.style, Style::Slashed | Style::Pipe | Style::Operands)
            || self.name == "rclone";
        let is_own = self.name == "flatout";
        (!moves_bytes).then_some(if is_own { bytes } else { 0 })
    }

    /// What it takes of its own, in seconds, where its processes hand bytes to one another: to begin, for an entry
    /// and for a byte (rsync 3.2 and tar against flatout, 1,000 files of 4 KiB and four of 4 MiB, on ext4, xfs and
    /// btrfs alike: rsync takes 110 to 170 ms for the files wherever they lie, AMD EPYC, 2026-11-30).
    pub fn own_s(&self, entries: u64, bytes: u64) -> f64 {
        let [begin_ns, entry_ns, byte_ns] = match self.style {
            Style::Slashed => [27e6, 80e3, 1.2],
            Style::Pipe => [2e6, 30e3, 1.1],
            _ => [0.0; 3],
        };
        (begin_ns + entries as f64 * entry_ns + bytes as f64 * byte_ns) / 1e9
    }

    /// Whether it copies one file under a name, or else whether it copies trees.
    pub fn copies(&self, is_file: bool) -> bool {
        match self.style {
            Style::Operands => is_file,
            // rclone takes the name for a directory.
            Style::Pipe => !is_file,
            _ => !is_file || self.name != "rclone",
        }
    }

    /// Whether the target must be there as an empty directory before it is called.
    pub fn wants_target(&self) -> bool {
        matches!(self.style, Style::Pipe)
    }

    /// How it is called to make `target` a copy of `source`.
    pub fn invocation(&self, program: &Path, source: &Path, target: &Path) -> Argv {
        let paths: [OsString; 2] = match self.style {
            Style::Operands => [operand("if=", source), operand("of=", target)],
            Style::Slashed if !source.is_file() => [slash(source), slash(target)],
            Style::Dotted if !source.is_file() => [source.join(".").into(), target.into()],
            Style::Pipe => {
                let [program, source, target] =
                    [program, source, target].map(|path| quoted(path.as_os_str()));
                let [at, create, extract] = ["-C", "-cf - . |", "-xpf -"].map(OsString::from);
                let words = [&program, &at, &source, &create, &program, &at, &target, &extract];
                return vec!["sh".into(), "-c".into(), words.map(OsStr::new).join(OsStr::new(" "))];
            }
            Style::Plain | Style::Slashed | Style::Dotted => [source.into(), target.into()],
        };
        let options = self.options.iter().map(OsString::from);
        std::iter::once(program.into()).chain(options).chain(paths).collect()
    }
}

fn slash(path: &Path) -> OsString {
    let mut text = path.as_os_str().to_owned();
    text.push("/");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::rival::{ALL, Discipline};

    #[test]
    fn every_copier_on_the_list_can_be_called() {
        for rival in ALL.iter().filter(|rival| rival.discipline == Discipline::Copy) {
            let manner = Manner::of(rival.name).unwrap();
            let call = manner.invocation(Path::new("/bin/x"), Path::new("/s"), Path::new("/t"));
            assert!(call.len() >= 3, "{call:?}");
        }
    }

    #[test]
    fn commands_are_those_that_the_rows_name() {
        let call = |name: &str| {
            let manner = Manner::of(name).unwrap();
            let call = manner.invocation(Path::new("p"), Path::new("/a'b"), Path::new("/t"));
            call.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(call("cp-a"), "p -a /a'b /t");
        assert_eq!(call("cpx"), "p -r --no-config /a'b/. /t");
        assert_eq!(call("rsync-r"), "p -r --inplace -W --no-compress /a'b/ /t/");
        let tar = r"sh -c p -C '/a'\''b' -cf - . | p -C /t -xpf -";
        assert_eq!(call("tar"), tar);
    }

    #[test]
    fn flatout_copies_to_the_very_target_and_promises_all() {
        let call =
            Manner::FLATOUT.invocation(Path::new("/bin/f"), Path::new("/s"), Path::new("/t"));
        assert_eq!(call, ["/bin/f", "copy", "-T", "--resume=never", "/s", "/t"]);
        assert_eq!(Manner::FLATOUT.promise_as(true), Fidelity::ALL);
        assert_eq!(Manner::FLATOUT.class, Class::Archive);
        assert!(!Manner::FLATOUT.wants_target());
        assert!(Manner::of("flatout").is_none(), "no rival of itself");
    }

    #[test]
    fn onto_a_copy_only_those_are_called_who_leave_it_as_it_is() {
        let call = |name: &str| {
            let again = Manner::of(name).unwrap().in_state(State::Unchanged)?;
            let call = again.invocation(Path::new("p"), Path::new("/s"), Path::new("/t"));
            Some(call.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(call("rsync-a").as_deref(), Some("p -a /s/ /t/"));
        assert_eq!(call("cp-a").as_deref(), Some("p -a -u -T /s /t"));
        assert_eq!(["cp-r", "tar", "xcp", "cpz"].map(call), [const { None }; 4]);
    }

    #[test]
    fn without_privilege_nobody_is_held_to_owners() {
        let manner = Manner::of("cp-a").unwrap();
        assert!(manner.promise_as(true).has(Kind::Owner));
        let held = manner.promise_as(false);
        assert!(!held.has(Kind::Owner) && held.has(Kind::HardLink) && held.has(Kind::Content));
    }
}
