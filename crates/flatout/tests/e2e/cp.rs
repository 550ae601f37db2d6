//! `flatout cp`: held against GNU cp with the same words in an equal folder.

mod invocation;
mod letters;
mod nobody;
mod option;
mod order;
mod property;
mod restated;
mod special;
mod stopped;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::bin::{Folder, executable};
use crate::copy::oracle::{Aspect, Difference, Leeway, Portrait, differences};

/// Whoever is not root, in tests that root runs.
pub const NOBODY: u32 = 65_534;
/// Times after this one are those of the test itself, which no two runs have in common.
const THE_PAST_S: i64 = 1_500_000_000;

/// One program in its own folder.
pub struct Trial<'a> {
    pub program: &'a Path,
    pub first: &'a [&'a str],
    pub folder: &'a Path,
    pub user: Option<u32>,
    pub input: Option<&'a [u8]>,
    pub environment: &'a [(&'a str, &'a str)],
}

impl Trial<'_> {
    /// Runs it with these words.
    pub fn run(&self, words: &[String]) -> Output {
        let mut command = Command::new(self.program);
        command.args(self.first).args(words).current_dir(self.folder);
        command.env("LC_ALL", "C").envs(self.environment.iter().copied());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        let Some(input) = self.input else {
            return command.stdin(Stdio::null()).output().unwrap();
        };
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // It may have ended without a question.
        let _ = std::io::Write::write_all(&mut stdin, input);
        drop(stdin);
        child.wait_with_output().unwrap()
    }
}

/// Both programs, and a folder for each.
pub struct Pair {
    place: Folder,
    program: OsString,
    pub user: Option<u32>,
    pub input: Option<Vec<u8>>,
    pub environment: Vec<(&'static str, &'static str)>,
}

/// What came of a run of both.
pub struct Compared {
    pub cp: Output,
    pub flatout: Output,
    pub differences: Vec<Difference>,
}

impl Pair {
    /// Two folders that `plant` fills alike.
    pub fn new(plant: impl Fn(&Path)) -> Self {
        let place = Folder::new();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).unwrap();
        let program = executable().into();
        let pair = Self { place, program, user: None, input: None, environment: Vec::new() };
        pair.plant(plant);
        pair
    }

    /// Another pair of folders in the place of these.
    pub fn plant(&self, plant: impl Fn(&Path)) {
        for side in ["cp", "flatout"] {
            let folder = self.place.join(side);
            if std::fs::remove_dir_all(&folder).is_err() && folder.exists() {
                // A user may have closed directories to himself.
                Command::new("chmod").args(["-R", "u+rwx"]).arg(&folder).status().unwrap();
                std::fs::remove_dir_all(&folder).unwrap();
            }
            std::fs::create_dir(&folder).unwrap();
            plant(&folder);
        }
    }

    /// Has the programs run by nobody, who may not reach this one where it was built.
    pub fn as_nobody(&mut self) {
        (self.program, self.user) = (self.place.admit_all().into(), Some(NOBODY));
    }

    pub fn folder(&self, side: &str) -> std::path::PathBuf {
        self.place.join(side)
    }

    /// Runs both with these words.
    pub fn run(&self, words: &[String]) -> Compared {
        let trial = |side: &str, program: &Path, first: &[&str]| {
            let folder = self.folder(side);
            let (user, input) = (self.user, self.input.as_deref());
            let environment = &self.environment;
            Trial { program, first, folder: &folder, user, input, environment }.run(words)
        };
        let cp = trial("cp", "cp".as_ref(), &[]);
        let flatout = trial("flatout", self.program.as_ref(), &["cp"]);
        Compared { cp, flatout, differences: self.differences() }
    }

    /// Runs both with the words of a line, and fails unless they do the same.
    #[track_caller]
    pub fn same(&self, line: &str) -> Compared {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let compared = self.run(&words);
        assert!(compared.is_same(), "{line}: {compared}");
        compared
    }

    fn differences(&self) -> Vec<Difference> {
        let leeway = Leeway::but(&[Aspect::Accessed, Aspect::Holes, Aspect::Room]);
        let [expected, found] = ["cp", "flatout"].map(|side| Portrait::of(&self.folder(side)));
        let mut all = differences(&expected, &found, leeway);
        let is_now = |portrait: &Portrait, path: &[u8]| {
            portrait.entries.get(path).is_some_and(|entry| entry.modified.0 > THE_PAST_S)
        };
        all.retain(|one| {
            let is_symlink =
                expected.entries.get(&one.path).is_some_and(|entry| !entry.text.is_empty());
            one.aspect != Aspect::Modified
                || !(is_symlink || is_now(&expected, &one.path) && is_now(&found, &one.path))
        });
        all
    }
}

/// How often somebody complained: questions are none, and have no line of their own.
pub fn complaints(output: &Output) -> usize {
    let text = String::from_utf8_lossy(&output.stderr);
    let questions = ["cp: overwrite ", "cp: replace ", "cp: unwritable "];
    let asked: usize = questions.iter().map(|question| text.matches(question).count()).sum();
    text.matches("cp: ").count() - asked
}

impl Compared {
    /// Whether both did the same, and ended alike.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
            && self.cp.status.code() == self.flatout.status.code()
            && complaints(&self.cp) == complaints(&self.flatout)
    }
}

impl std::fmt::Display for Compared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, output) in [("cp", &self.cp), ("flatout", &self.flatout)] {
            let said = String::from_utf8_lossy(&output.stderr);
            writeln!(formatter, "\n{name}: {:?}\n{said}", output.status.code())?;
        }
        let lines = self.differences.iter().take(20);
        lines.into_iter().try_for_each(|line| writeln!(formatter, "{line}"))
    }
}
