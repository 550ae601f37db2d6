//! What is copied: the experiments, the trees that each has, and the pictures of them.

use clap::Args;
use flatout_measure::{Chart, Measured, Parameters, Row as _};

use super::State;
use super::choose::Wanted;
use super::row::Row;
use crate::corpus::{Corpus, Shape, name};
use crate::option::{chosen_or, distinct, each_once, size};
use crate::{Error, Extent};

/// Groups of corpora that are experiments of their own; all others are trees with a name.
const GROUPS: [(&str, Experiment); 7] = [
    ("sizes", Experiment::ByCount),
    ("split-1G", Experiment::ByPieces),
    ("split-32M", Experiment::ByPieces),
    ("deep", Experiment::ByDepth),
    ("single", Experiment::Single),
    ("memory", Experiment::Memory),
    ("deviation", Experiment::Spread),
];
/// What the whole grid has, beside the split of a large total.
const FULL: [&str; 6] = ["sizes", "split-32M", "deep", "memory", "deviation", "single"];
/// Files and lengths of the coarse grid.
const QUICK_COUNTS: [u64; 3] = [1, 10, 100];
const QUICK_FILE_BYTES: [u64; 3] = [128 << 10, 1 << 20, 16 << 20];
const QUICK_PIECES: [u64; 4] = [1, 16, 256, 4096];
const QUICK_DEPTHS: [u64; 3] = [1, 10, 100];
/// The trees of bare `bench`: files and their length.
const FEW: [(u64, u64); 2] = [(16, 1 << 20), (500, 4 << 10)];
/// The total that is split into more and more pieces: the first for which all of them fit.
pub(super) const SPLIT_BYTES: [u64; 4] = [1 << 30, 512 << 20, 256 << 20, 128 << 20];
const SPLIT_LEAST_BYTES: u64 = 64 << 10;

flatout_sys::words! {
    /// What is varied.
    pub(super) enum Experiment: id {
        /// The number of files of one size.
        ByCount = "copy/by-count",
        /// The number of files that hold the same bytes.
        ByPieces = "copy/by-pieces",
        /// The directories above a file.
        ByDepth = "copy/by-depth",
        /// Few large files.
        Single = "copy/single",
        /// Files that show how much memory a copy takes.
        Memory = "copy/memory",
        /// The same tree ten times, for the spread.
        Spread = "copy/deviation",
        /// A tree with a name.
        Tree = "copy/tree",
        /// A directory with nothing in it: what the program takes for itself.
        Empty = "copy/empty",
    }
}

/// What is asked for instead of the usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[group(skip)]
pub struct Selection {
    /// Length of each file; with --files and --tree-depth every combination is copied [default
    /// then: 1M]
    #[arg(long = "file-size", value_name = "SIZE,…", value_parser = size, value_delimiter = ',')]
    pub file_bytes: Vec<u64>,
    /// Number of files [default beside --file-size or --tree-depth: 1]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub files: Vec<u64>,
    /// Directories above them, each in the one before [default beside the other two: 0]
    #[arg(id = "tree_depth", long = "tree-depth", value_name = "N,…", value_delimiter = ',')]
    pub depths: Vec<u64>,
    /// Trees by name, as `flatout versus` has them: sizes, split-1G, split-32M, deep, single,
    /// memory, deviation, source-tree, 900x128K, 10x1M@5, …
    #[arg(long = "corpus", value_name = "NAME,…", value_delimiter = ',')]
    pub corpora: Vec<String>,
}

impl Selection {
    /// Each number once.
    pub(crate) fn each_once(&mut self) {
        each_once(&mut self.file_bytes);
        each_once(&mut self.files);
        each_once(&mut self.depths);
    }

    /// All trees that are wanted, those of one experiment beside each other.
    ///
    /// Errors: [`Error::Usage`] for what means nothing, or no machine has.
    pub(super) fn wanted(&self, extent: Extent) -> Result<Vec<Wanted>, Error> {
        if *self == Self::default() {
            return usual(extent);
        }
        let mut wanted = self.grid()?;
        for corpus_name in &self.corpora {
            wanted.extend(named(corpus_name)?);
        }
        Ok(distinct(wanted, Wanted::eq))
    }

    /// All combinations of what is asked for; nothing where nothing is.
    fn grid(&self) -> Result<Vec<Wanted>, Error> {
        let Self { file_bytes, files, depths, .. } = self;
        if file_bytes.is_empty() && files.is_empty() && depths.is_empty() {
            return Ok(Vec::new());
        }
        let is_deep = depths.len() > 1 && files.len() < 2;
        let experiment = if is_deep { Experiment::ByDepth } else { Experiment::ByCount };
        let mut wanted = Vec::new();
        for length in chosen_or(file_bytes, &[1 << 20]) {
            for &depth in &chosen_or(depths, &[0]) {
                for &count in &chosen_or(files, &[1]) {
                    let corpus = name::uniform(count, length, depth)?;
                    wanted.push(Wanted::new(experiment, corpus));
                }
            }
        }
        Ok(wanted)
    }
}

fn named(corpus_name: &str) -> Result<Vec<Wanted>, Error> {
    let group = GROUPS.iter().find(|(group, _)| *group == corpus_name);
    let experiment = match group {
        Some((_, experiment)) => *experiment,
        None if corpus_name == "all" => return all(),
        None if corpus_name.starts_with("deep-") => Experiment::ByDepth,
        None => Experiment::Tree,
    };
    let corpora = name::parse(&[corpus_name.to_owned()])?;
    Ok(corpora.into_iter().map(|corpus| Wanted::new(experiment, corpus)).collect())
}

/// All trees that have a name, those of groups in the experiments of these alone.
fn all() -> Result<Vec<Wanted>, Error> {
    let groups: Result<Vec<_>, Error> = GROUPS.iter().map(|(group, _)| named(group)).collect();
    let trees = name::parse(&["all".to_owned()])?;
    let trees = trees.into_iter().map(|corpus| Wanted::new(Experiment::Tree, corpus));
    Ok(distinct(groups?.concat().into_iter().chain(trees), |known, one| {
        one.experiment == Experiment::Tree && known.corpus.name == one.corpus.name
    }))
}

/// What is copied when nothing is asked for.
fn usual(extent: Extent) -> Result<Vec<Wanted>, Error> {
    let mut wanted = Vec::new();
    if extent == Extent::Few {
        for (files, file_bytes) in FEW {
            wanted.push(Wanted::new(Experiment::ByCount, name::uniform(files, file_bytes, 0)?));
        }
    } else {
        for group in FULL {
            wanted.extend(named(group)?);
        }
    }
    if extent == Extent::Quick {
        wanted.retain(is_quick);
    }
    if extent == Extent::Full {
        for total_bytes in SPLIT_BYTES {
            for corpus in name::split(total_bytes, SPLIT_LEAST_BYTES)? {
                wanted.push(Wanted::new(Experiment::ByPieces, corpus));
            }
        }
    }
    wanted.iter_mut().for_each(|one| one.is_optional = true);
    Ok(wanted)
}

fn is_quick(wanted: &Wanted) -> bool {
    let Corpus { files, .. } = *wanted.corpus;
    match wanted.experiment {
        Experiment::ByCount => {
            QUICK_COUNTS.contains(&files) && QUICK_FILE_BYTES.contains(&wanted.file_bytes())
        }
        Experiment::ByPieces => QUICK_PIECES.contains(&files),
        Experiment::ByDepth => QUICK_DEPTHS.contains(&wanted.corpus.depth()),
        Experiment::Memory => true,
        Experiment::Single | Experiment::Spread | Experiment::Tree | Experiment::Empty => false,
    }
}

impl Wanted {
    /// A directory with nothing in it.
    pub(super) fn empty() -> Self {
        let shape = Shape::Files { files: 0, file_bytes: 0, directories: 1, depth: 0 };
        Self::new(Experiment::Empty, Corpus::new("empty", shape))
    }

    /// Length of each file; 0 where they differ.
    pub(super) fn file_bytes(&self) -> u64 {
        if let Shape::Files { file_bytes, .. } = self.corpus.shape { file_bytes } else { 0 }
    }

    /// What tells its row from others with the same id: no more than what is varied, because
    /// every parameter that varies makes lines of a picture.
    pub(super) fn parameters(&self, state: State) -> Parameters {
        let Corpus { name, bytes, files, .. } = &*self.corpus;
        let depth = self.corpus.depth();
        let common = Parameters::default().with("cache_state", state.name()).with("until", "cache");
        let mut parameters = match self.experiment {
            Experiment::Tree => return common.with("corpus", name.clone()),
            Experiment::Empty => return common,
            Experiment::ByPieces => common.with("bytes", *bytes),
            _ => common.with("file_bytes", self.file_bytes()),
        };
        let is_by_depth = self.experiment == Experiment::ByDepth;
        parameters.set_known("files", (!is_by_depth || *files > 1).then_some(*files));
        parameters.set_known("tree_depth", (is_by_depth || depth > 0).then_some(depth));
        parameters
    }
}

/// The pictures, of the rows that there are.
pub(super) fn charts(rows: &[Measured<Row>]) -> Vec<Chart> {
    let chart = |title: &str, experiment: Experiment, x: &str, lines: &[&str]| {
        Chart::new(title, experiment.id(), x, lines).by_powers_of_two()
    };
    let all = [
        chart("Copy time by file count", Experiment::ByCount, "files", &["file_bytes"]),
        chart("Copy time by number of pieces", Experiment::ByPieces, "files", &["bytes"]),
        chart("Copy time by tree depth", Experiment::ByDepth, "tree_depth", &["file_bytes"]),
    ];
    let has_points = |chart: &Chart| {
        let has_figure = |measured: &&Measured<Row>| {
            measured.row.id() == chart.id && measured.outcome.median.is_some()
        };
        let own = rows.iter().filter(has_figure);
        let mut points: Vec<f64> = own
            .filter_map(|measured| measured.row.parameters().value(&chart.x_parameter)?.number())
            .collect();
        points.sort_by(f64::total_cmp);
        points.dedup();
        points.len() > 1
    };
    all.into_iter().filter(has_points).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(selection: &Selection, extent: Extent) -> Vec<(&'static str, String)> {
        let wanted = selection.wanted(extent).unwrap();
        wanted.iter().map(|one| (one.experiment.id(), one.corpus.name.clone())).collect()
    }

    #[test]
    fn the_whole_grid_has_every_experiment() {
        let names = names(&Selection::default(), Extent::Full);
        for (id, name) in [
            ("copy/by-count", "1x128K"),
            ("copy/by-count", "2000x400K"),
            ("copy/by-count", "900x16M"),
            ("copy/by-pieces", "16384x64K"),
            ("copy/by-pieces", "1x1G"),
            ("copy/by-pieces", "4096x8K"),
            ("copy/by-depth", "deep-100"),
            ("copy/single", "1x16G"),
            ("copy/single", "2x4G"),
            ("copy/memory", "10x32M"),
            ("copy/deviation", "50x4M"),
        ] {
            assert!(names.contains(&(id, name.to_owned())), "{id} {name}: {names:?}");
        }
    }

    #[test]
    fn no_two_rows_are_alike() {
        let all = Selection { corpora: vec!["all".to_owned()], ..Selection::default() };
        for (selection, extent) in [
            (Selection::default(), Extent::Full),
            (Selection::default(), Extent::Quick),
            (all, Extent::Full),
        ] {
            let wanted = selection.wanted(extent).unwrap();
            let mut rows: Vec<_> = wanted
                .iter()
                .map(|one| format!("{} {:?}", one.experiment.id(), one.parameters(State::Hot)))
                .collect();
            rows.sort();
            let count = rows.len();
            rows.dedup();
            assert_eq!(rows.len(), count);
        }
        assert_eq!(names(&Selection::default(), Extent::Few).len(), 2);
    }

    #[test]
    fn options_make_a_grid_and_names_keep_their_experiment() {
        let grid = Selection { files: vec![1, 2], file_bytes: vec![0, 7], ..Selection::default() };
        let of_grid = ["1x0", "2x0", "1x7", "2x7"].map(|name| ("copy/by-count", name.to_owned()));
        assert_eq!(names(&grid, Extent::Full), of_grid);
        let deep = Selection { depths: vec![1, 5], ..Selection::default() };
        let of_depth = ["1x1M@1", "1x1M@5"].map(|name| ("copy/by-depth", name.to_owned()));
        assert_eq!(names(&deep, Extent::Quick), of_depth);
        let corpora = ["deep-3", "source-tree", "memory", "memory"].map(str::to_owned).to_vec();
        let named = Selection { corpora, ..Selection::default() };
        let ids: Vec<_> = names(&named, Extent::Full).into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, ["copy/by-depth", "copy/tree", "copy/memory"]);
    }

    #[test]
    fn what_means_nothing_is_wrong_use() {
        for selection in [
            Selection { files: vec![0], ..Selection::default() },
            Selection { depths: vec![1001], ..Selection::default() },
            Selection { file_bytes: vec![u64::MAX], ..Selection::default() },
            Selection { corpora: vec!["nothing".to_owned()], ..Selection::default() },
        ] {
            let error = selection.wanted(Extent::Full).unwrap_err();
            assert!(matches!(error, Error::Usage(_)), "{selection:?}");
        }
    }
}
