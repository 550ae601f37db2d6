//! What is made of the definition of the command line for others: completions and manual pages.

use std::fs;
use std::process::Command;

use crate::bin::Folder;
use crate::skip::skip;

/// The commands that help lists.
const COMMANDS: [&str; 13] = [
    "bench",
    "completions",
    "copy",
    "cp",
    "help",
    "man",
    "read",
    "report",
    "serve",
    "sum",
    "tune",
    "versus",
    "write",
];

/// What the program says of this file; none if it is not installed.
fn checked(program: &str, arguments: &[&str], folder: &Folder) -> Option<String> {
    let ran = Command::new(program).args(arguments).current_dir(folder.path()).output();
    let ran = ran.ok()?;
    let said = [ran.stdout, ran.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(ran.status.success(), "{program} {arguments:?}: {said:?}");
    Some(said.concat())
}

#[test]
fn shells_read_their_completions() {
    let folder = Folder::new();
    let mut missing = Vec::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = folder.flatout(["completions", shell]).run();
        for command in COMMANDS {
            assert!(ran.exits(0).stdout.contains(command), "{shell}: {command}");
        }
        assert!(!ran.stdout.contains("transfer"), "{shell}: what is hidden stays hidden");
        fs::write(folder.join(shell), &ran.stdout).unwrap();
        if checked(shell, &["-n", shell], &folder).is_none() {
            missing.push(shell);
        }
    }
    folder.flatout(["completions", "tcsh"]).run().exits(2);
    if !missing.is_empty() {
        skip!("not installed: {missing:?}");
    }
}

#[test]
fn bash_completes_commands_and_forms() {
    let folder = Folder::new();
    let script = folder.flatout(["completions", "bash"]).run().stdout;
    fs::write(folder.join("script"), script).unwrap();
    let ask = |words: &str, at: usize| {
        let (rest, last) = words.rsplit_once(' ').unwrap();
        let before = rest.rsplit(' ').next().unwrap();
        let asked = format!(
            "source ./script; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _flatout_words flatout '{last}' '{before}' 2>/dev/null; echo \"${{COMPREPLY[@]}}\""
        );
        checked("bash", &["-c", &asked], &folder)
    };
    let Some(commands) = ask("flatout rep", 1) else { skip!("bash is not installed") };
    assert_eq!(commands.trim(), "report");
    let whole = ask("flatout bench", 1).unwrap();
    assert_eq!(whole.trim(), "bench");
    let forms = ask("flatout report --format open", 3).unwrap();
    assert_eq!(forms.trim(), "openmetrics");
    let areas = ask("flatout bench di", 2).unwrap();
    assert_eq!(areas.trim(), "disk");
    let further = ask("flatout bench disk c", 3).unwrap();
    assert_eq!(further.trim(), "cache cpu copy");
    let options = ask("flatout bench disk --rwm", 3).unwrap();
    assert_eq!(options.trim(), "--rwmixread");
    let patterns = ask("flatout bench disk --rw randw", 4).unwrap();
    assert_eq!(patterns.trim(), "randwrite");
    let areas = ask("flatout help bench me", 3).unwrap();
    assert_eq!(areas.trim(), "memory");
    let areas = ask("flatout help bench c", 3).unwrap();
    assert_eq!(areas.trim(), "cache cpu copy");
    let further = ask("flatout man bench disk me", 4).unwrap();
    assert_eq!(further.trim(), "memory");
    let commands = ask("flatout help me", 2).unwrap();
    assert_eq!(commands.trim(), "");
    let items = ask("flatout bench disk --rw read,randw", 4).unwrap();
    assert_eq!(items.trim(), "read,randwrite");
    let items = ask("flatout copy --preserve = mode,links,o", 4).unwrap();
    assert_eq!(items.trim(), "mode,links,ownership");
    let rivals = ask("flatout versus rsy", 2).unwrap();
    assert_eq!(rivals.trim(), "rsync rsync-a rsync-r");
    // Of several areas each one's options, and the values of those that know the option before.
    let several = ask("flatout bench cpu disk --rwm", 4).unwrap();
    assert_eq!(several.trim(), "--rwmixread");
    let neither = ask("flatout bench cpu memory --rwm", 4).unwrap();
    assert_eq!(neither.trim(), "");
    let values = ask("flatout bench disk cpu --rw randw", 5).unwrap();
    assert_eq!(values.trim(), "randwrite");
    let further = ask("flatout bench cpu disk me", 4).unwrap();
    assert_eq!(further.trim(), "memory");
    // `--format=` is three words to bash.
    let words = ask("flatout report --format = open", 4).unwrap();
    assert_eq!(words.trim(), "openmetrics");
    let words = ask("flatout cp --reflink = al", 4).unwrap();
    assert_eq!(words.trim(), "always");
    // What is neither a word of ours nor a path stays as it is.
    let size = ask("flatout write --size 4", 3).unwrap();
    assert_eq!(size.trim(), "4");
    // Where nothing of ours is meant, bash offers files.
    let asked = "source ./script; COMP_WORDS=(flatout report ''); COMP_CWORD=2; \
                 _flatout_words flatout '' report; echo ${#COMPREPLY[@]}; complete -p flatout";
    let said = checked("bash", &["-c", asked], &folder).unwrap();
    assert!(said.starts_with("0\n") && said.contains("-o default"), "{said}");
    let place = ask("flatout bench disk scr", 3).unwrap();
    assert_eq!(place.trim(), "script");
}

#[test]
fn fish_completes_a_further_area_or_a_place() {
    let folder = Folder::new();
    fs::write(folder.join("cold"), "").unwrap();
    let script = folder.flatout(["completions", "fish"]).run().stdout;
    fs::write(folder.join("script"), script).unwrap();
    let asked = [
        "bench disk c",
        "bench cpu c",
        "completions ",
        "write --size ",
        "help bench c",
        "bench disk --rw read,randw",
        "versus --state=warm,c",
    ];
    let asked = asked.map(|words| format!("complete -C 'flatout {words}'; echo =="));
    let asked = format!("source ./script; {}", asked.join("; "));
    let Some(said) = checked("fish", &["-c", &asked], &folder) else {
        skip!("fish is not installed")
    };
    let said: Vec<&str> = said.lines().filter_map(|line| line.split('\t').next()).collect();
    let offered = said.split(|word| *word == "==").map(|words| {
        let mut words = words.to_vec();
        words.sort_unstable();
        words
    });
    let offered: Vec<Vec<&str>> = offered.collect();
    assert_eq!(offered[0], ["cache", "cold", "copy", "cpu"], "an area or a place");
    assert_eq!(offered[1], ["cache", "copy", "cpu"], "no place is taken");
    assert_eq!(offered[2], ["bash", "fish", "zsh"]);
    assert_eq!(offered[3], Vec::<&str>::new(), "a size is no file");
    assert_eq!(offered[4], ["cache", "copy", "cpu"]);
    assert_eq!(offered[5], ["read,randwrite"]);
    assert_eq!(offered[6], ["--state=warm,cold"]);
}

#[test]
fn zsh_is_offered_an_area_where_a_place_may_stand() {
    let script = Folder::new().flatout(["completions", "zsh"]).run().stdout;
    let areas = "_alternative \"areas:area:(cache disk syscall cpu memory network copy)\"";
    assert_eq!(script.matches(areas).count(), 2, "behind disk and behind copy");
    assert!(!script.contains("'*::"), "options are offered behind an operand");
    assert!(!script.contains(":HOST[:"), "a colon ends the name of a value");
}

/// A shell in a terminal of its own, in which each line is typed and completed, and then printed.
const ZSH: &str = r#"
zmodload zsh/zpty
for words in "$@"; do
    zpty shell "zsh -f -i"
    zpty -w shell "PS1=; bindkey -e; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -D"
    zpty -w shell 'ask() { zle complete-word; print -r -- "<""<$BUFFER>>"; exit; }'
    zpty -w shell 'zle -N ask; bindkey "^I" ask; print REA''DY'
    zpty -r -m shell seen "*READY*"
    zpty -w -n shell "$words"$'\t'
    zpty -r -m shell seen "*<<*>>*"
    zpty -d shell
    print -r -- "${${seen##*<<}%%>>*}"
done
"#;

#[test]
fn zsh_completes_the_options_of_each_area_that_is_named() {
    let folder = Folder::new();
    let script = folder.flatout(["completions", "zsh"]).run().stdout;
    fs::write(folder.join("_flatout"), script).unwrap();
    fs::write(folder.join("ask"), ZSH).unwrap();
    let asked = [
        ("flatout bench cpu disk --rwm", "flatout bench cpu disk --rwmixread="),
        ("flatout bench disk cpu --rw randw", "flatout bench disk cpu --rw randwrite"),
        ("flatout bench cpu memory --rwm", "flatout bench cpu memory --rwm"),
        ("flatout help bench mem", "flatout help bench memory"),
        ("flatout bench disk --rw read,randw", "flatout bench disk --rw read,randwrite"),
        ("flatout versus --state=warm,co", "flatout versus --state=warm,cold"),
    ];
    let words = asked.map(|(typed, _)| typed);
    let Some(said) = checked("zsh", &[&["-f", "ask"], &words[..]].concat(), &folder) else {
        skip!("zsh is not installed")
    };
    let said: Vec<&str> = said.lines().map(str::trim_end).collect();
    assert_eq!(said, asked.map(|(_, completed)| completed));
}

#[test]
fn manual_pages_are_clean_and_keep_their_examples() {
    let folder = Folder::new();
    let pages = std::iter::once(vec!["man"]).chain(COMMANDS.map(|command| vec!["man", command]));
    let pages = pages.chain([vec!["man", "bench", "disk"], vec!["man", "bench", "copy"]]);
    let mut is_checked = false;
    for words in pages {
        let page = folder.flatout(&words).run();
        assert!(page.exits(0).stdout.starts_with(".TH \"FLATOUT"), "{page}");
        fs::write(folder.join("page"), &page.stdout).unwrap();
        let path = folder.join("page");
        let shown =
            ["MANWIDTH=80", "man", "--warnings", "-E", "UTF-8", "-l", path.to_str().unwrap()];
        if Command::new("man").arg("--version").output().is_ok() {
            let shown = checked("env", &shown, &folder).unwrap();
            assert!(!shown.contains("warning"), "{words:?}: {shown}");
            let is_wide = |line: &&str| line.chars().count() > 80;
            assert_eq!(shown.lines().find(is_wide), None, "{words:?}");
            for head in ["EXAMPLES", "EXIT STATUS", "SEE ALSO"] {
                assert!(shown.contains(head), "{words:?}: {head}: {shown}");
            }
            is_checked = true;
        }
    }
    let unknown = folder.flatout(["man", "transfer"]).run();
    unknown.complains(2, &["transfer", "there are bench"]);
    if !is_checked {
        skip!("man is not installed");
    }
}
