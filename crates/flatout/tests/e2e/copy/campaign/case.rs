//! A random case: trees over few names, so that every pair of kinds meets, and the words that
//! merge them. A seed decides all of it.

use super::disturbance::Disturbance;
use super::item::{Attributes, Item, Place, Sort, Text};
use crate::filesystem::is_root;
use crate::fixture::Random;

/// Whoever runs the copiers when it is not root; also an owner of entries.
pub const RUNNER: u32 = 12_345;

const NAMES: [&[u8]; 7] = [b"f", b"g", b"h", b"k", b"d", b"e", b"\xff x"];
const LENGTHS: [usize; 6] = [0, 10, 10, 10, 4096, 5000];
/// Few of them, so that many are equal; none is near the time of the run.
const SECONDS: [i64; 3] = [1, 1_000_000_000, 1_500_000_000];
const FILE_MODES: [u32; 12] =
    [0o644, 0o644, 0o600, 0o640, 0o666, 0o444, 0o400, 0, 0o755, 0o4755, 0o2755, 0o6711];
const DIRECTORY_MODES: [u32; 11] =
    [0o755, 0o755, 0o755, 0o700, 0o775, 0o2775, 0o1777, 0o555, 0o711, 0o3770, 0];
const UMASKS: [u32; 4] = [0, 0o077, 0o111, 0o277];

/// How the operands are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `a/. t`
    Contents,
    /// `a t`
    Into,
    /// `-T a t`
    Exact,
    /// `a/. b/. t`
    Merged,
    /// `a b t`
    Several,
    /// `a/x a/y t`
    Entries,
    /// `-T a/x t/y`
    One,
}

const FORMS: [Form; 12] = [
    Form::Contents,
    Form::Contents,
    Form::Contents,
    Form::Contents,
    Form::Into,
    Form::Exact,
    Form::Exact,
    Form::Merged,
    Form::Several,
    Form::Entries,
    Form::One,
    Form::One,
];

/// A case, complete: what is there, who copies it, and with which words.
#[derive(Debug, Clone)]
pub struct Case {
    pub items: Vec<Item>,
    pub form: Form,
    pub operands: Vec<Place>,
    /// None: whoever runs the tests.
    pub runner: Option<u32>,
    pub umask: u32,
    /// Something that happens meanwhile.
    pub disturbance: Option<Disturbance>,
}

struct Gardener<'a> {
    random: &'a mut Random,
    items: Vec<Item>,
    runner: Option<u32>,
    form: Form,
}

impl Case {
    /// The case of this number in the campaign of this seed.
    pub fn new(seed: u64, number: usize) -> Self {
        let mut random =
            Random::new(seed ^ (number as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95));
        let runner = (is_root() && random.below(5) < 2).then_some(RUNNER);
        let form = FORMS[random.below(FORMS.len())];
        let umask = if random.below(4) == 0 { UMASKS[random.below(4)] } else { 0o022 };
        let mut gardener = Gardener { random: &mut random, items: Vec::new(), runner, form };
        gardener.plant();
        let items = gardener.items;
        let operands = operands(form, &items, &mut random);
        let disturbance = Disturbance::new(&items, &mut random);
        Self { items, form, operands, runner, umask, disturbance }
    }

    /// Whether root copies.
    pub fn is_privileged(&self) -> bool {
        self.runner.is_none() && is_root()
    }

    /// Options and operands, as both programs take them.
    pub fn words(&self) -> Vec<Place> {
        let option = matches!(self.form, Form::Exact | Form::One).then(|| b"-T".to_vec());
        option.into_iter().chain([b"--".to_vec()]).chain(self.operands.iter().cloned()).collect()
    }
}

/// The words, the target last. It is now and then spelt as the symlink that leads to it.
fn operands(form: Form, items: &[Item], random: &mut Random) -> Vec<Place> {
    let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let target = if random.below(10) == 0 { "l" } else { "t" };
    let below = |root: &[u8]| {
        let is_below = |item: &&Item| item.place.starts_with(root);
        items.iter().filter(is_below).map(|item| item.place.clone()).collect::<Vec<_>>()
    };
    let (inside, above) = (below(b"a/"), below(b"t/"));
    let mut pick = || inside[random.below(inside.len())].clone();
    match form {
        Form::Contents => words(&["a/.", target]),
        Form::Into => words(&["a", target]),
        Form::Exact => words(&["a", target]),
        Form::Merged => words(&["a/.", "b/.", target]),
        Form::Several => words(&["a", "b", target]),
        Form::Entries => vec![pick(), pick(), target.into()],
        Form::One => {
            let source = pick();
            let other = [b"t/", last(&source)].concat();
            let meets = above.contains(&other) || above.is_empty() || random.below(3) == 0;
            let target = if meets { other } else { above[random.below(above.len())].clone() };
            vec![source, target]
        }
    }
}

/// The last component.
pub fn last(place: &[u8]) -> &[u8] {
    place.rsplit(|&byte| byte == b'/').next().unwrap_or(place)
}

/// The directory that it is in; empty for the world.
pub fn parent(place: &[u8]) -> &[u8] {
    place.iter().rposition(|&byte| byte == b'/').map_or(b"", |end| &place[..end])
}

/// The text that leads from a place to another one.
fn relative(from: &[u8], to: &[u8]) -> Vec<u8> {
    let depth = from.iter().filter(|&&byte| byte == b'/').count();
    [b"../".repeat(depth), to.to_vec()].concat()
}

impl Gardener<'_> {
    fn plant(&mut self) {
        for root in ["o", "a", "b", "t"] {
            self.directory(root.as_bytes());
        }
        self.plain(b"o/f", Sort::File { length: 10, seed: 1 });
        self.plain(b"o/g", Sort::File { length: 10, seed: 2 });
        self.directory(b"o/d");
        self.plain(b"o/d/f", Sort::File { length: 10, seed: 3 });
        self.plain(b"l", Sort::Symlink(Text::Plain(b"t".to_vec())));
        let (a, b) = (4 + self.random.below(6), 2 + self.random.below(4));
        self.tree(b"a", a);
        if matches!(self.form, Form::Merged | Form::Several) {
            self.tree(b"b", b);
        }
        let count = 3 + self.random.below(7);
        match self.form {
            Form::Into | Form::Several if self.random.below(5) > 0 => {
                self.directory(b"t/a");
                self.tree(b"t/a", count);
            }
            _ => self.tree(b"t", count),
        }
    }

    /// A random one of them, or of these and nothing.
    fn one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    fn has(&self, place: &[u8]) -> bool {
        self.items.iter().any(|item| item.place == place)
    }

    /// Something that is there before chance begins, in good order.
    fn plain(&mut self, place: &[u8], sort: Sort) {
        let owner = self.runner.unwrap_or(0);
        let mode = if matches!(sort, Sort::Directory) { 0o755 } else { 0o644 };
        let attributes = Attributes {
            mode,
            owner: (owner, owner),
            access: None,
            default: None,
            note: None,
            seconds: SECONDS[1],
        };
        self.items.push(Item { place: place.to_vec(), sort, attributes });
    }

    /// An uppermost directory; odd now and then.
    fn directory(&mut self, place: &[u8]) {
        self.plain(place, Sort::Directory);
        let is_plain = place == b"o" || self.random.below(3) > 0;
        if !is_plain {
            let attributes = self.attributes(&Sort::Directory);
            self.items.last_mut().unwrap().attributes = attributes;
        }
    }

    fn tree(&mut self, root: &[u8], count: usize) {
        for _ in 0..count {
            let place = self.new_place(root);
            if !self.has(&place) {
                let sort = self.sort(&place, root);
                let attributes = self.attributes(&sort);
                self.items.push(Item { place, sort, attributes });
            }
        }
    }

    /// A name in one of the directories of a tree; often one that the source has, too.
    fn new_place(&mut self, root: &[u8]) -> Place {
        let is_below = |place: &[u8]| place == root || place.starts_with(&[root, b"/"].concat());
        let directories = self
            .items
            .iter()
            .filter(|item| is_below(&item.place) && matches!(item.sort, Sort::Directory));
        let directories: Vec<Place> = directories.map(|item| item.place.clone()).collect();
        if root.starts_with(b"t") && self.random.below(3) > 0 {
            let sources = self.items.iter().filter_map(|item| item.place.strip_prefix(b"a/"));
            let sources: Vec<Place> = sources.map(|rest| [root, b"/", rest].concat()).collect();
            let place = sources[self.random.below(sources.len())].clone();
            if directories.iter().any(|directory| directory == parent(&place)) {
                return place;
            }
        }
        let directory = directories[self.random.below(directories.len())].clone();
        [&directory[..], b"/", self.pick(&NAMES)].concat()
    }

    fn sort(&mut self, place: &[u8], root: &[u8]) -> Sort {
        let made = |item: &&Item| !matches!(item.sort, Sort::Directory);
        match self.random.below(24) {
            0..=8 => Sort::File { length: self.pick(&LENGTHS), seed: self.random.next() },
            9..=12 => Sort::Directory,
            13..=17 => Sort::Symlink(self.text(place, root)),
            18..=19 => {
                let others: Vec<Place> =
                    self.items.iter().filter(made).map(|item| item.place.clone()).collect();
                let same = self.twin(place, root);
                match others.iter().find(|other| **other == same) {
                    Some(twin) if self.one_in(3) => Sort::Link(twin.clone()),
                    _ => Sort::Link(others[self.random.below(others.len())].clone()),
                }
            }
            20 => Sort::Sparse(self.random.next()),
            // cp would wait for ever for a reader of a FIFO of `a` that `b` has a file for.
            21 if self.form != Form::Merged || root.starts_with(b"t") => Sort::Fifo,
            22 if self.one_in(2) => Sort::Socket,
            23 if is_root() && self.one_in(2) => self.device(),
            _ => Sort::File { length: self.pick(&LENGTHS), seed: self.random.next() },
        }
    }

    fn device(&mut self) -> Sort {
        if self.one_in(2) { Sort::Null } else { Sort::Block }
    }

    /// What has the same place on the other side.
    fn twin(&self, place: &[u8], root: &[u8]) -> Place {
        let other: &[u8] = match root {
            b"t" | b"t/a" => b"a",
            _ if self.has(b"t/a") => b"t/a",
            _ => b"t",
        };
        [other, &place[root.len()..]].concat()
    }

    fn text(&mut self, place: &[u8], root: &[u8]) -> Text {
        let to = match self.random.below(8) {
            0 => return Text::Plain(b"nowhere".to_vec()),
            1 => return Text::Plain(last(place).to_vec()),
            2 | 3 => self.twin(place, root),
            _ => self.items[self.random.below(self.items.len())].place.clone(),
        };
        match self.random.below(4) {
            0 => Text::Absolute(to),
            _ => Text::Plain(relative(place, &to)),
        }
    }

    fn attributes(&mut self, sort: &Sort) -> Attributes {
        let is_directory = matches!(sort, Sort::Directory);
        let mut mode =
            if is_directory { self.pick(&DIRECTORY_MODES) } else { self.pick(&FILE_MODES) };
        // The tests themselves must be able to look at everything.
        if !is_root() {
            mode |= if is_directory { 0o700 } else { 0o400 };
        }
        let owner = match self.runner {
            Some(runner) if self.random.below(6) > 0 => (runner, runner),
            _ => (self.pick(&[0, 1000, RUNNER]), self.pick(&[0, 1000, RUNNER])),
        };
        let list = |gardener: &mut Self| {
            // A directory that its owner may not search is for root's tests only.
            let is_open = is_directory && (!is_root() || gardener.one_in(2));
            let owner = if is_open { 7 } else { 6 };
            let mut bits = || [7, 6, 5, 4, 0][gardener.random.below(5)];
            [owner, bits(), bits(), bits(), bits(), bits()]
        };
        Attributes {
            mode,
            owner,
            access: self.one_in(7).then(|| list(self)),
            default: (is_directory && self.one_in(5)).then(|| list(self)),
            note: self.one_in(5).then(|| (self.pick(&["user.one", "user.two"]), b'x')),
            seconds: self.pick(&SECONDS),
        }
    }
}
