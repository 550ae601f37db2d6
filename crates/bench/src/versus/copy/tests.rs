//! Races run by hand, with copiers that are shell scripts around cp(1), flatout among them.

use std::fs;
use std::process::Command;

use flatout_sys::CancelToken;
use flatout_sys::launcher::write_program;
use flatout_sys::process::Account;

use super::*;
use crate::versus::commands::Commands;
use crate::versus::race::{Checked, Run};
use crate::versus::rival::{ALL, Found};
use crate::versus::{fact, race};

const FLATOUT: &str = "flatout";
const FAITHFUL: (&str, &str) = ("cp-a", "cp -a \"$1\" \"$2\"");

/// A directory to race in, and copiers that are scripts.
struct Stable {
    place: tempfile::TempDir,
    ground: Ground,
}

impl Stable {
    /// `scripts`: names of copiers, and what they do with `$1` and `$2`, source and target. Flatout
    /// is faithful unless it is among them.
    fn new(scripts: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let install = |(name, text): (&str, &str)| {
            let path = place.path().join(name);
            // The last two arguments, whatever options come first.
            let skip = "while [ $# -gt 2 ]; do shift; done";
            write_program(&path, &format!("#!/bin/sh\nset -e\n{skip}\n{text}\n"));
            path
        };
        let (ours, rivals): (Vec<_>, Vec<_>) =
            scripts.iter().copied().partition(|(name, _)| *name == FLATOUT);
        let flatout = install(ours.first().copied().unwrap_or((FLATOUT, FAITHFUL.1)));
        let found = rivals.into_iter().map(|(name, text)| {
            let path = install((name, text));
            let rival = ALL.iter().find(|rival| rival.name == name).unwrap();
            Found { rival, path, version: "1".to_owned() }
        });
        let ground = Ground {
            found: found.collect(),
            directory: place.path().join("race"),
            flatout,
            extent: Extent::Quick,
            states: Vec::new(),
            trees: Trees {
                files: Some(3),
                file_bytes: Some(5000),
                depth: Some(2),
                ..Trees::default()
            },
            room_bytes: 1 << 30,
            tree_part: 1,
            tried: crate::tried::Tried::USUAL,
            keeps: false,
            orders: Vec::new(),
            commands: Commands::default(),
            seed: 1,
            cancel: CancelToken::manual(),
        };
        fs::create_dir(place.path().join("race")).unwrap();
        Self { place, ground }
    }

    fn targets(&self) -> usize {
        fs::read_dir(self.ground.targets()).map_or(0, Iterator::count)
    }
}

/// The races that there are in the room of the ground.
fn races(ground: &Ground) -> Result<Vec<Race<'static>>, Error> {
    Ok(plan(ground, ground.room_bytes)?.races)
}

/// One turn, as the race takes it.
fn turn(race: &mut Race<'_>, index: usize, round: u32) -> Result<Checked, Error> {
    let contestant = race.contestants[index].clone();
    let run = Run { contestant: &contestant, index, round, ends_ns: u64::MAX };
    let facts = race.workload.prepare(&run)?;
    let call = race.workload.invocation(&run)?;
    let ran = Command::new(&call[0]).args(&call[1..]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    race.workload.complete(&run)?;
    let mut checked = race.workload.check(&run, &Account::default())?;
    checked.facts.extend(facts);
    Ok(checked)
}

#[test]
fn flatout_is_the_first_and_held_against_each_rival() {
    let stable = Stable::new(&[("cpz", FAITHFUL.1), FAITHFUL]);
    let raced = races(&stable.ground).unwrap();
    let names: Vec<_> = raced[0].contestants.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, [FLATOUT, "cpz", "cp-a"]);
    assert!(race::pairs(&raced[0]).eq([(0, 1), (0, 2)]));
    let nobody = Stable::new(&[(FLATOUT, FAITHFUL.1)]);
    assert!(races(&nobody.ground).unwrap().is_empty(), "flatout alone is no race");
}

#[test]
fn a_faithful_copy_passes_and_what_others_lack_is_noted() {
    let stable = Stable::new(&[("cpz", "cp -r \"$1\" \"$2\"; chmod 711 \"$2\"/d"), FAITHFUL]);
    let mut races = races(&stable.ground).unwrap();
    assert_eq!(races.len(), 1);
    let race = &mut races[0];
    assert_eq!(race.parameters.value("corpus"), Some(&"3x5000@2".into()));
    assert_eq!(race.parameters.value("cache_state"), Some(&"hot".into()));
    assert_eq!(race.bytes, 15_000);
    let whole = turn(race, 0, 0).unwrap();
    assert_eq!(whole.facts.text(fact::LACKS), Some(""));
    assert_eq!(whole.facts.text(fact::FIDELITY), Some("archive"));
    let cached = whole.facts.count(fact::source_cached_bytes(State::Hot));
    assert!(cached.is_some() && cached == whole.facts.count(fact::SOURCE_DATA_BYTES));
    assert_eq!(whole.warnings, []);
    for round in 0..2 {
        let less = turn(race, 1, round).unwrap();
        let [warning] = &less.warnings[..] else { panic!("{less:?}") };
        assert_eq!(warning.code, flatout_measure::warning::KEEPS_LESS);
        assert!(warning.text.starts_with("keeps less than cp -a: directory_mode 1"), "{warning:?}");
        let lacks = less.facts.text(fact::LACKS).unwrap().to_owned();
        assert!(lacks.contains("directory_mode 1"), "{lacks}");
        assert_eq!(less.facts.text(fact::FIDELITY), Some("contents+symlinks"));
    }
}

#[test]
fn what_was_promised_and_is_broken_fails_with_its_path() {
    let harms = [
        ("rm \"$2\"/d/d/file-000001", "missing \"d/d/file-000001\""),
        ("truncate -s 100 \"$2\"/d/d/file-000001", "size \"d/d/file-000001\""),
        ("echo x > \"$2\"/d/d/file-000002", "file-000002"),
        ("chmod 777 \"$2\"/d/d/file-000000", "mode \"d/d/file-000000\" (0644 became 0777)"),
        ("touch \"$2\"/more", "extra \"more\""),
        ("rm -r \"$2\"", "it left no copy"),
    ];
    for (index, (broken, said)) in (0..2).flat_map(|index| harms.map(|harm| (index, harm))) {
        let script = format!("cp -a \"$1\" \"$2\"; {broken}");
        let stable = Stable::new(&[(FLATOUT, &script), ("cp-a", &script)]);
        let mut races = races(&stable.ground).unwrap();
        let error = turn(&mut races[0], index, 0).unwrap_err().to_string();
        let is_said =
            error.contains(said) || (said.contains("0644") && error.contains("became 0777"));
        assert!(is_said, "{broken}: {error}");
    }
}

#[test]
fn a_symlink_that_got_lost_fails_those_who_promise_symlinks() {
    let lose = "cp -a \"$1\" \"$2\"; rm \"$2\"/a/link";
    let mut stable = Stable::new(&[FAITHFUL, ("rsync-r", lose), ("fcp", lose)]);
    let tree = stable.place.path().join("tree");
    fs::create_dir_all(tree.join("a")).unwrap();
    std::os::unix::fs::symlink("nowhere", tree.join("a/link")).unwrap();
    fs::write(tree.join("a/file"), "x").unwrap();
    stable.ground.trees = Trees { tree: Some(tree.clone()), ..Trees::default() };
    let mut races = races(&stable.ground).unwrap();
    let race = &mut races[0];
    turn(race, 1, 0).unwrap();
    let noted = turn(race, 2, 0).unwrap();
    assert!(noted.facts.text(fact::LACKS).unwrap().contains("missing_symlink 1"), "{noted:?}");
    let error = turn(race, 3, 0).unwrap_err().to_string();
    assert!(error.contains("missing symlink \"a/link\""), "{error}");
    assert!(tree.join("a/link").is_symlink() && !stable.ground.corpora().exists());
}

#[test]
fn targets_stay_until_whoever_has_the_place_leaves_it() {
    let mut stable = Stable::new(&[FAITHFUL]);
    stable.ground.states = vec![State::Durable, State::Hot];
    let mut races = races(&stable.ground).unwrap();
    turn(&mut races[0], 0, 0).unwrap();
    turn(&mut races[0], 0, 1).unwrap();
    races.remove(0);
    turn(&mut races[0], 0, 0).unwrap();
    assert_eq!(stable.targets(), 3);
    assert!(stable.ground.corpora().join("3x5000@2.made").exists());
}

#[test]
fn what_is_unchanged_is_one_copy_that_stays_for_all_rounds() {
    let script = "echo \"$2\" >> \"${0%/*}/log\"; cp -auT \"$1\" \"$2\"";
    let mut stable = Stable::new(&[(FLATOUT, script), ("rsync-a", script), ("xcp", script)]);
    stable.ground.states = vec![State::Unchanged];
    let mut races = races(&stable.ground).unwrap();
    assert_eq!(races[0].contestants.len(), 2, "xcp copies everything again");
    for round in 0..2 {
        for index in 0..2 {
            let checked = turn(&mut races[0], index, round).unwrap();
            let targets = checked.facts.text(fact::TARGETS);
            assert_eq!(targets, Some("one copy by flatout, for all"));
            assert_eq!(stable.targets(), 1);
        }
    }
    let log = fs::read_to_string(stable.place.path().join("log")).unwrap();
    let places: std::collections::HashSet<_> =
        log.lines().map(|place| place.trim_end_matches('/')).collect();
    assert_eq!((log.lines().count(), places.len()), (5, 1), "it is laid once: {log}");
    // Without times flatout would copy everything again, too.
    let mut without = Stable::new(&[("rsync-a", script), ("cp-a", script)]);
    without.ground.states = vec![State::Unchanged];
    without.ground.trees.no_preserve = Some("all".to_owned());
    let checked = turn(&mut self::races(&without.ground).unwrap()[0], 1, 0).unwrap();
    assert_eq!(checked.facts.text(fact::TARGETS), Some("one copy by rsync-a, for all"));
}

#[test]
fn refresh_deletes_a_copy_before_each_run_and_keeps_none_besides() {
    // The script says where it copied to, and that nothing was there.
    let script = "test ! -e \"$2\"; echo \"$2\" >> \"${0%/*}/log\"; cp -a \"$1\" \"$2\"";
    let mut stable = Stable::new(&[(FLATOUT, script), FAITHFUL]);
    stable.ground.states = vec![State::Refresh];
    let mut races = races(&stable.ground).unwrap();
    for round in 0..3 {
        let checked = turn(&mut races[0], 0, round).unwrap();
        assert_eq!(checked.facts.text(fact::TARGETS), Some("deleted just before each run"));
        assert_eq!(stable.targets(), 1);
    }
    let log = fs::read_to_string(stable.place.path().join("log")).unwrap();
    let places: std::collections::HashSet<_> = log.lines().collect();
    assert_eq!((log.lines().count(), places.len()), (4, 1), "one copy before the first: {log}");
}

#[test]
fn whoever_cannot_make_the_copy_to_be_deleted_says_why() {
    let mut stable = Stable::new(&[(FLATOUT, "echo out of luck >&2; exit 3"), FAITHFUL]);
    stable.ground.states = vec![State::Refresh];
    let mut failing = races(&stable.ground).unwrap();
    let error = turn(&mut failing[0], 0, 0).unwrap_err().to_string();
    assert!(error.contains("flatout failed with exit code 3: out of luck"), "{error}");
    let mut stable = Stable::new(&[(FLATOUT, "sleep 1000"), FAITHFUL]);
    stable.ground.states = vec![State::Refresh];
    let tree = stable.place.path().join("tree");
    fs::create_dir(&tree).unwrap();
    stable.ground.trees = Trees { tree: Some(tree), ..Trees::default() };
    let mut stopped = races(&stable.ground).unwrap();
    stable.ground.cancel.cancel();
    let error = turn(&mut stopped[0], 0, 0).unwrap_err().to_string();
    assert!(error.contains("interrupted"), "nobody waits for one that hangs: {error}");
}

#[test]
fn copies_that_were_compared_take_no_room_from_the_next_and_the_row_says_so() {
    let mut stable = Stable::new(&[FAITHFUL]);
    let corpus = name::uniform(3, 5000, 2).unwrap();
    stable.ground.room_bytes = corpus.make_bytes() + 3 * corpus.copy_bytes();
    let mut races = races(&stable.ground).unwrap();
    let mut counts = Vec::new();
    for round in 0..2 {
        for index in 0..2 {
            let checked = turn(&mut races[0], index, round).unwrap();
            let text = checked.facts.text(fact::TARGETS).unwrap();
            counts.push((stable.targets(), text.starts_with("fresh; emptied")));
        }
    }
    assert_eq!(counts, [(1, true), (2, true), (3, true), (4, true)]);
}

#[test]
fn what_does_not_fit_is_left_out_with_the_reason() {
    let mut stable = Stable::new(&[FAITHFUL]);
    let corpora = ["1x1K", "1x900M", "1x2K"].map(str::to_owned).to_vec();
    stable.ground.trees = Trees { corpora, ..Trees::default() };
    let Planned { races, room_bytes, left_out } = plan(&stable.ground, 1 << 30).unwrap();
    assert_eq!((races.len(), left_out.len()), (2, 1));
    assert!(left_out[0].starts_with("1x900M is left out: "), "{left_out:?}");
    assert!(left_out[0].contains("--max-write"));
    assert!(room_bytes > 0 && room_bytes < 1 << 20);
    assert!(!stable.ground.directory.join(crate::versus::FOLDER).exists());
    stable.ground.trees.corpora = vec!["nonsense".to_owned()];
    assert!(matches!(plan(&stable.ground, 1 << 30), Err(Error::Usage(_))));
}

#[test]
fn without_copiers_there_are_no_races() {
    let mut stable = Stable::new(&[]);
    stable.ground.trees.corpora = vec!["all".to_owned()];
    let Planned { races, room_bytes, left_out } = plan(&stable.ground, 1 << 30).unwrap();
    assert!(races.is_empty() && room_bytes == 0 && left_out.is_empty());
}
