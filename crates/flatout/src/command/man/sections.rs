//! What manual pages say that no help has: exit status, files, environment, further pages.

/// A term, and what it means.
pub type Entry = (&'static str, &'static str);

/// The sections of a command's page.
#[derive(Clone, Copy)]
pub struct Sections {
    pub status: &'static [Entry],
    pub files: &'static [Entry],
    pub environment: &'static [Entry],
    pub see_also: &'static str,
}

const STATUS: &[Entry] = &[("0", "All is done."), ("1", "Something failed."), WRONG_USE, SIGNAL];
const WRONG_USE: Entry = ("2", "Wrong use: nothing was done.");
const SIGNAL: Entry = ("128+N", "Signal N ended it, after it had cleaned up; 130 is an interrupt.");

const PROFILE: Entry = (
    "~/.config/flatout/profile.json",
    "The settings that flatout tune found for this machine's filesystems, which copy, read and sum use.",
);
const UNFINISHED: Entry = (".flatout-copy-*", "In a target directory: what is not finished yet.");
const SETTINGS: Entry = ("FLATOUT_PROFILE", "The file of settings instead; empty: none.");
const CONFIG: Entry = ("XDG_CONFIG_HOME, HOME", "Where flatout's own files lie.");
const INSTRUCTIONS: Entry = (
    "FLATOUT_INSTRUCTION_SET",
    "sse2, sse4.1 or avx2 keeps kernels from wider vectors than the processor has.",
);
const COLOR: Entry = ("NO_COLOR, TERM", "No colours where NO_COLOR is not empty, or TERM is dumb.");
const LOCALE: Entry = (
    "LC_ALL, LC_CTYPE, LANG",
    "The first that is not empty tells whether a terminal gets more than ASCII: in a locale of UTF-8.",
);

const NOISE: Entry = (
    "~/.config/flatout/noise.json",
    "How far runs of this machine differ by themselves, as flatout compare --noise learned it.",
);
const NOISE_FILE: Entry = ("FLATOUT_NOISE", "The file of noise instead; empty: none.");

/// Areas of bench.
const AREA: Sections = Sections {
    files: &[NOISE],
    environment: &[NOISE_FILE, CONFIG, INSTRUCTIONS, COLOR, LOCALE],
    see_also: "flatout-bench(1)",
    ..USUAL
};

const USUAL: Sections = Sections {
    status: STATUS,
    files: &[],
    environment: &[INSTRUCTIONS, COLOR, LOCALE],
    see_also: "flatout(1)",
};

/// What the pages of commands and areas say, by their last word.
const PAGES: &[(&str, Sections)] = &[
    (
        "flatout",
        Sections {
            files: &[PROFILE],
            environment: &[INSTRUCTIONS, SETTINGS, CONFIG, COLOR, LOCALE],
            see_also: "flatout-bench(1), flatout-read(1), flatout-write(1), flatout-copy(1), \
                       flatout-cp(1), flatout-sum(1), flatout-versus(1), flatout-compare(1), flatout-tune(1), \
                       flatout-report(1), flatout-serve(1); each is printed by: flatout man COMMAND",
            ..USUAL
        },
    ),
    (
        "bench",
        Sections {
            files: &[
                ("flatout-DATE.json, flatout-DATE.html", "What a run without an area leaves here."),
                NOISE,
            ],
            see_also: "flatout(1), flatout-report(1), flatout-compare(1), flatout-serve(1), fio(1)",
            ..AREA
        },
    ),
    (
        "cp",
        Sections {
            status: &[
                ("0", "All is copied."),
                ("1", "Something was not copied, or not whole; or wrong use."),
                SIGNAL,
            ],
            files: &[UNFINISHED],
            environment: &[
                (
                    "POSIXLY_CORRECT",
                    "What follows the first operand is an operand; a file is made where a dangling symlink leads.",
                ),
                ("SIMPLE_BACKUP_SUFFIX", "What follows the name of a backup, without --suffix."),
                ("VERSION_CONTROL", "How backups are called, without a value of --backup."),
                ("TMPDIR", "Where files without a name are made that hold what memory does not."),
            ],
            see_also: "flatout(1), flatout-copy(1), cp(1)",
        },
    ),
    (
        "copy",
        Sections {
            status: &[
                ("0", "All is copied."),
                ("1", "Something was not copied, or not whole."),
                WRONG_USE,
                SIGNAL,
            ],
            files: &[
                PROFILE,
                UNFINISHED,
                (
                    "~/.local/state/flatout/copies",
                    "Which files of a copy are finished, until it ends well.",
                ),
            ],
            environment: &[
                SETTINGS,
                ("FLATOUT_RESUME", "Where that is noted instead; empty: nowhere."),
                ("XDG_CONFIG_HOME, XDG_STATE_HOME, HOME", "Where flatout's own files lie."),
                ("TMPDIR", "Where files without a name are made that hold what memory does not."),
                INSTRUCTIONS,
            ],
            see_also: "flatout(1), flatout-tune(1), flatout-sum(1), cp(1), rsync(1)",
        },
    ),
    (
        "sum",
        Sections {
            status: &[
                ("0", "All files were read; with --check all have the digest that is listed."),
                ("1", "Some could not be read, or have another digest."),
                WRONG_USE,
                SIGNAL,
            ],
            files: &[PROFILE],
            environment: &[SETTINGS, CONFIG, INSTRUCTIONS],
            see_also: "flatout(1), flatout-tune(1), b3sum(1), sha256sum(1), cksum(1)",
        },
    ),
    (
        "compare",
        Sections {
            status: &[
                ("0", "Same or better: no row is worse."),
                ("1", "Some row is worse."),
                ("2", "Wrong use, or a file that cannot be read."),
                ("3", "Nothing in one matches anything in the other."),
                ("4", "Too much is unclear."),
            ],
            files: &[NOISE],
            environment: &[NOISE_FILE, CONFIG, COLOR, LOCALE],
            see_also: "flatout(1), flatout-bench(1), flatout-report(1)",
        },
    ),
    (
        "read",
        Sections {
            files: &[PROFILE],
            environment: &[SETTINGS, CONFIG, INSTRUCTIONS],
            see_also: "flatout(1), flatout-write(1), flatout-tune(1), dd(1)",
            ..USUAL
        },
    ),
    (
        "tune",
        Sections {
            files: &[
                PROFILE,
                ("DIR/.flatout-tune", "The files that are read and copied, until it ends."),
            ],
            environment: &[SETTINGS, CONFIG, INSTRUCTIONS, COLOR, LOCALE],
            see_also: "flatout(1), flatout-copy(1), flatout-read(1), flatout-sum(1)",
            ..USUAL
        },
    ),
    (
        "versus",
        Sections {
            files: &[(
                "DIR/.flatout-versus",
                "The files of the race, until it ends; with --keep longer.",
            )],
            environment: &[("PATH", "Where rivals are looked for."), INSTRUCTIONS, COLOR, LOCALE],
            see_also: "flatout(1), flatout-bench(1), flatout-report(1), cp(1), rsync(1), fio(1), dd(1)",
            ..USUAL
        },
    ),
    (
        "write",
        Sections {
            files: &[("FILE", "What is written; removed again where a new one is not completed.")],
            environment: &[INSTRUCTIONS, COLOR, LOCALE],
            see_also: "flatout(1), flatout-read(1), dd(1)",
            ..USUAL
        },
    ),
    (
        "report",
        Sections {
            files: &[("flatout-DATE.json, flatout-DATE.html", "What a bare flatout bench left.")],
            environment: &[COLOR, LOCALE],
            see_also: "flatout(1), flatout-bench(1), flatout-compare(1)",
            ..USUAL
        },
    ),
    (
        "serve",
        Sections {
            files: &[("FILE of --token-file", "The token that clients must know.")],
            environment: &[INSTRUCTIONS],
            see_also: "flatout(1), flatout-bench-network(1), iperf3(1)",
            ..USUAL
        },
    ),
    (
        "completions",
        Sections {
            files: &[
                ("~/.local/share/bash-completion/completions/flatout", "Where bash looks for it."),
                ("~/.zfunc/_flatout", "Where zsh does, with ~/.zfunc in fpath."),
                ("~/.config/fish/completions/flatout.fish", "Where fish does."),
            ],
            environment: &[],
            ..USUAL
        },
    ),
    (
        "man",
        Sections {
            files: &[("~/.local/share/man/man1", "Where man(1) looks for pages of one user.")],
            environment: &[],
            see_also: "flatout(1), flatout-help(1), man(1)",
            ..USUAL
        },
    ),
    (
        "help",
        Sections {
            environment: &[("COLUMNS", "The width of a help text that no terminal shows.")],
            see_also: "flatout(1), flatout-man(1)",
            ..USUAL
        },
    ),
    ("network", Sections { see_also: "flatout-bench(1), flatout-serve(1), iperf3(1)", ..AREA }),
    (
        "disk",
        Sections {
            files: &[
                (
                    "DIR/.flatout-*",
                    "The files of metadata tests, until they end; others have no name.",
                ),
                NOISE,
            ],
            see_also: "flatout-bench(1), fio(1)",
            ..AREA
        },
    ),
    ("cache", AREA),
    ("syscall", AREA),
    ("cpu", AREA),
    ("memory", AREA),
];

/// The area copy; there is a command of this name, too.
const COPY_AREA: Sections = Sections {
    files: &[("DIR/.flatout-copy", "The trees that are copied, until it ends."), NOISE],
    see_also: "flatout-bench(1), flatout-copy(1)",
    ..AREA
};

/// The sections of a page, by its name: `flatout-bench-disk`.
pub fn of(name: &str) -> Sections {
    if name == "flatout-bench-copy" {
        return COPY_AREA;
    }
    let word = name.rsplit('-').next().unwrap_or(name);
    let found = PAGES.iter().find(|(known, _)| *known == word);
    found.map_or(Sections { environment: &[], ..USUAL }, |(_, sections)| *sections)
}
